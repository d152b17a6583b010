"""The interfaces between workers, runners and kinds of jobs, in the worker's process and on executors alike.

A worker leases parts and passes each to a `PartRunner` as a `LeasedPart`. In the process where the part runs, a
`JobKind` gets it as a `RunningPart`. Its calls reach the worker, in the same process or over the network.
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
"""For how long a part outside the worker's process may use Kafka after each grant of the worker: as long as the longest
request of a part log. A worker waits for this long before it releases a part that does not respond.
"""
MAX_WAIT_S: Final = 0.5
"""The longest time that a part waits for its rate or for lagging shards before it checks again whether it must stop."""


class PartStopped(Retryable):
    """A part was stopped, because its job must stop or its lease is lost. What has landed stays."""


@dataclass(frozen=True, slots=True)
class RunningPart:
    """A running part, as its `JobKind` sees it.

    `deadline` returns until when, on the monotonic clock, no other worker can have the part and Kafka may be used. Call
    it before each use. Call `report` after each chunk, and `check` while waiting: both raise `PartStopped` if the part
    must stop. Call `pace` before a chunk lands, outside of any transaction: it returns when the samples may land, or
    raises `PartStopped`. `first_begun_ms` is a time before the first attempt at the part; None if there was none.

    Call `confirm` once the transactional id of the part is acquired, before anything lands: it raises `PartStopped` if
    the store has given the part to another worker, or the job must stop. A worker whose machine was suspended can't
    know this from its clock, and has just fenced the others.

    Call `report_rejected` with the counts before raising an error for records that Kafka rejected, because the circuit
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
"""Fences a part, so that no worker that may still have it lands anything. Returns what has landed, if that is known.
Thread-safe.
"""


class JobKind(Protocol):
    """What a kind of job does with its parts. Every call may be repeated after a crash."""

    def run(self, running: RunningPart) -> PartOutcome:
        """Run a part to its end. Raises `Retryable` for failures that are not the fault of the part."""
        ...

    def fencing(self, job: BulkJob) -> AbstractContextManager[FencePart]:
        """A context whose value fences parts of the job."""
        ...

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Complete a job whose parts are all done. Returns the job as done; unchanged if it must be retried later."""
        ...

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Announce a failed or cancelled job. Returns it with its report; unchanged if it must be retried later."""
        ...


class KindOpener(Protocol):
    """Creates a `JobKind` in the process where parts run. An opener must be picklable (a frozen dataclass at module
    level). It is sent to Spark's executors with its attributes, which include passwords: exclude these from its `repr`.
    """

    def __call__(self, clock: Clock) -> JobKind:
        """A new `JobKind`, which does not connect before it is used."""
        ...


@dataclass(frozen=True, slots=True)
class LeasedPart:
    """A part that a worker has leased, as its runner sees it. All calls are thread-safe, and only `confirm` blocks.

    `remaining_s` returns for how long no other worker can have the part. `report` receives the counts. `check` raises
    `PartStopped` if the part must stop, and `confirm` if it must by the rows in the store. `wait_s` returns how long to
    wait before the samples may land; 0 permits it, and the samples then count as landed.
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
    """The end of a part, with an outcome or an error. Nothing more lands under its lease."""

    part: BulkPart
    outcome: PartOutcome | None = None
    error: StrandlineError | None = None


class PartRunner(Protocol):
    """Runs leased parts. For one thread."""

    def width(self) -> int:
        """How many parts should be leased at a time."""
        ...

    def start(self, leased: LeasedPart) -> None:
        """Accept a part. It may start later."""
        ...

    def ended(self, poll: Callable[[], None]) -> Sequence[PartEnd]:
        """The parts that have ended since the last call; returns after a while even if there is none. Calls `poll` from
        time to time in this thread, after which `check` of a part may raise.
        """
        ...

    def close(self) -> None:
        """Stop all parts: nothing of them lands once this returns. They are not reported as ended."""
        ...


def pace(leased: LeasedPart, samples: int, clock: Clock, check: Callable[[], None]) -> None:
    """Wait until the samples may land, calling `check` meanwhile."""
    while (wait := leased.wait_s(samples)) > 0:
        clock.sleep(min(wait, MAX_WAIT_S))
        check()


class InProcessRunner:
    """Runs parts in this process, one after the other, in the thread that calls `ended`."""

    def __init__(self, kinds: dict[str, JobKind], clock: Clock, width: int = 1) -> None:
        """`width` is the number of parts that are leased at a time."""
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
