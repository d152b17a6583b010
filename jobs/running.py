"""What the code that runs a part is given, and what it must offer: the same in a worker's own process and on executors.

A worker leases parts and hands each to a `PartRunner` as a `LeasedPart`. Where the part runs, a `JobKind` gets it as a
`RunningPart`, whose calls end up at the worker, be it in the same process or over a network.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from strandline.clock import Clock
from strandline.errors import Retryable, StrandlineError
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.outcome import PartOutcome
from strandline.store.bulk_jobs import BulkJob, BulkPart

GRANT_S: Final = 10.0
"""For so long a part that runs outside of its worker's process may use Kafka after it has asked the worker: as long as
the longest request of a part log. A worker waits for it before it gives up a part that does not answer.
"""
MAX_WAIT_S: Final = 0.5
"""How long a part waits for its rate or for the shards before it looks again whether it is to stop."""


class PartStopped(Retryable):
    """A part was given up: its job is to stop, or its lease is lost. What has landed of it stays."""


@dataclass(frozen=True, slots=True)
class RunningPart:
    """A part that is being run, for the code that runs it.

    `deadline` says until when, on the monotonic clock, nobody else can have the part: Kafka may be used until then. Ask
    for it before each use. `report` is to be called after each chunk, and `check` while it waits for something: both
    raise `PartStopped` if the part is to be given up. `pace` is to be called before a chunk lands, outside of any
    transaction: it returns when so many samples may land, and raises `PartStopped`, too. `first_begun_ms` is when the
    part may have been begun for the first time; None if it never was.

    `confirm` is to be called once the part's transactional id is held, and before anything lands: it raises
    `PartStopped` if the store has given the part to another worker, or its job is to stop. A worker whose machine stood
    still does not know that by its clock, and by then it has fenced the others.

    `report_rejected` is to be called with what was counted before an error is raised for records that Kafka refused: the circuit
    breaker counts them.
    """

    job: BulkJob
    part: BulkPart
    deadline: Callable[[], float]
    report: Callable[[AttemptCounts], None]
    check: Callable[[], None]
    first_begun_ms: int | None
    confirm: Callable[[], None] = lambda: None
    report_rejected: Callable[[AttemptCounts], None] = lambda _counts: None
    pace: Callable[[int], None] = lambda _samples: None


FencePart = Callable[[BulkPart], Counts | None]
"""Sees to it that nothing lands of a part that another worker may still have; gives what has landed of it, if that is
known. May be called by several threads at once.
"""


class JobKind(Protocol):
    """What a kind of job does with its parts. Each call may be repeated after a crash."""

    def run(self, running: RunningPart) -> PartOutcome:
        """Do a part to its end. Raises `Retryable` for what is no fault of the part."""
        ...

    def fencing(self, job: BulkJob) -> AbstractContextManager[FencePart]:
        """What fences parts of a job, while the block lasts."""
        ...

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Write what belongs to the end of a job: the job as it is then, which is done."""
        ...

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Tell others that a job has failed or was cancelled: the job as it is then, with its report."""
        ...


class KindOpener(Protocol):
    """Makes a `JobKind` wherever parts run. It is a value that can be pickled (a frozen dataclass of a module's own),
    and travels to Spark's executors with all that it holds, passwords too: leave those out of its `repr`.
    """

    def __call__(self, clock: Clock) -> JobKind:
        """A kind of the caller's own. Connects to nothing before it is used."""
        ...


@dataclass(frozen=True, slots=True)
class LeasedPart:
    """A part that a worker has leased, for its runner. All calls may come from any thread, and only `confirm` waits.

    `remaining_s` is for how long nobody else can have the part. `report` hears what was counted, `check` raises
    `PartStopped` if the part is to be given up, and `confirm` does so by what the store says. `wait_s` says how long to
    wait before so many samples may land: 0 for now, and then they count as landed.
    """

    job: BulkJob
    part: BulkPart
    first_begun_ms: int | None
    remaining_s: Callable[[], float]
    report: Callable[[AttemptCounts], None]
    check: Callable[[], None]
    confirm: Callable[[], None]
    wait_s: Callable[[int], float]


@dataclass(frozen=True, slots=True)
class PartEnd:
    """How a part has ended: with an outcome, or with an error. By then nothing of it lands under its lease."""

    part: BulkPart
    outcome: PartOutcome | None = None
    error: StrandlineError | None = None


class PartRunner(Protocol):
    """Runs parts that are leased already. Used by one thread."""

    def width(self) -> int:
        """How many parts it wants to have at a time."""
        ...

    def start(self, leased: LeasedPart) -> None:
        """Take on a part. It may begin later."""
        ...

    def ended(self, poll: Callable[[], None]) -> Sequence[PartEnd]:
        """The parts that have ended since the last call; returns after a while, too, if none has. Calls `look` now and
        then in this thread, after which a part's `check` may raise.
        """
        ...

    def close(self) -> None:
        """Give up all parts: once this returns, nothing of them lands. They are not reported as ended."""
        ...


def pace(leased: LeasedPart, samples: int, clock: Clock, check: Callable[[], None]) -> None:
    """Wait until so many samples may land; `check` is called meanwhile."""
    while (wait := leased.wait_s(samples)) > 0:
        clock.sleep(min(wait, MAX_WAIT_S))
        check()


class InProcessRunner:
    """Runs parts in this process, one after the other, in the thread that asks for those that have ended."""

    def __init__(self, kinds: dict[str, JobKind], clock: Clock, width: int = 1) -> None:
        """`width` is how many parts are leased at a time."""
        self._kinds, self._clock, self._width = kinds, clock, width
        self._waiting: list[LeasedPart] = []

    def width(self) -> int:
        return self._width

    def start(self, leased: LeasedPart) -> None:
        self._waiting.append(leased)

    def ended(self, poll: Callable[[], None]) -> Sequence[PartEnd]:
        if not self._waiting:
            return []
        leased = self._waiting.pop(0)
        clock = self._clock

        def check() -> None:
            poll()
            leased.check()

        def report(counts: AttemptCounts) -> None:
            leased.report(counts)
            check()

        running = RunningPart(
            leased.job,
            leased.part,
            lambda: clock.monotonic() + leased.remaining_s(),
            report,
            check,
            leased.first_begun_ms,
            leased.confirm,
            leased.report,
            lambda samples: pace(leased, samples, clock, check),
        )
        try:
            leased.check()
            return [PartEnd(leased.part, self._kinds[leased.job.kind].run(running))]
        except StrandlineError as error:
            return [PartEnd(leased.part, error=error)]

    def close(self) -> None:
        self._waiting.clear()
