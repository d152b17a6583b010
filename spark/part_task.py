"""What an executor does with one part of a bulk job. It never touches the tables of jobs: it asks the driver."""

import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field

from strandline.clock import Clock, SystemClock
from strandline.errors import StrandlineError
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import MAX_WAIT_S, KindOpener, PartStopped, RunningPart
from strandline.spark.part_channel import (
    NONCE_BYTES,
    Answer,
    Ask,
    ChannelBroken,
    Frames,
    PartFailed,
    ended_with,
    received,
)
from strandline.store.bulk_jobs import BulkJob, BulkPart

# The driver answers at once. One that takes longer is stopped, or out of reach: the part is given up.
_ANSWER_S = 30.0
# A grant that was given within this time is used without asking again.
_FRESH_S = 0.5


@dataclass(frozen=True, slots=True)
class PartTask:
    """A part as it travels to an executor, with the driver's address and the key for it."""

    job: BulkJob
    part: BulkPart
    first_begun_ms: int | None
    opener: KindOpener
    address: tuple[str, int]
    key: bytes = field(repr=False)


class DriverLink:
    """The executor's side of the channel, for one part and one thread."""

    def __init__(self, task: PartTask, clock: Clock) -> None:
        self._task, self._clock = task, clock
        try:
            self._connection = socket.create_connection(task.address, _ANSWER_S)
        except OSError as error:
            raise ChannelBroken(f"the driver at {task.address} can't be reached: {error}") from error
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = Frames(self._connection, task.key, received(self._connection, NONCE_BYTES), is_driver=False)
        self._asked = self._deadline = clock.monotonic()

    def greet(self) -> None:
        """Begin the part, once no other task has it. Raises `PartStopped`."""
        part = self._task.part
        while (answer := self._ask(Ask(part=(*part.place, part.epoch)))).wait_s > 0:
            self._clock.sleep(answer.wait_s)

    def deadline(self) -> float:
        """Until when Kafka may be used."""
        if self._clock.monotonic() - self._asked >= _FRESH_S:
            self.check()
        return self._deadline

    def check(self) -> None:
        """Raises `PartStopped`."""
        self._ask(Ask())

    def report(self, counts: AttemptCounts) -> None:
        """Tell what was counted. Raises `PartStopped`."""
        self._ask(Ask(counts=counts.to_json()))

    def confirm(self) -> None:
        """Raises `PartStopped` if the store says that the part is not to be run under this lease."""
        self._ask(Ask(confirm=True))

    def note(self, counts: AttemptCounts) -> None:
        """Tell what was counted, just before the part ends with an error."""
        # That error counts, and not whether this was heard.
        with suppress(PartStopped):
            self.report(counts)

    def pace(self, samples: int) -> None:
        """Wait until so many samples may land. Raises `PartStopped`."""
        while (answer := self._ask(Ask(samples=samples))).wait_s > 0:
            self._clock.sleep(min(answer.wait_s, MAX_WAIT_S))

    def end(self, how: PartOutcome | StrandlineError) -> None:
        """Tell how the part has ended. Nothing of it may be done after this."""
        self._exchange(ended_with(how))

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _ask(self, ask: Ask) -> Answer:
        asked = self._clock.monotonic()
        try:
            answer = self._exchange(ask)
        except ChannelBroken as error:
            raise PartStopped(f"the driver of {self._task.part.name} is gone: {error.message}") from error
        if answer.stop:
            raise PartStopped(answer.stop)
        self._asked, self._deadline = asked, asked + answer.seconds
        return answer

    def _exchange(self, ask: Ask) -> Answer:
        self._frames.send(ask)
        return Answer(**self._frames.receive())


def run_task(task: PartTask, clock: Clock | None = None) -> None:
    """Run a part, and tell the driver how it ended. Raises what is not for the driver to hear of: the task fails then,
    and the driver learns that from Spark.
    """
    clock = clock or SystemClock()
    with closing(DriverLink(task, clock)) as link:
        try:
            link.greet()
        except PartStopped:
            # The lease is over, or another task had the part: a task that Spark runs again does nothing.
            return
        link.end(_ended(task, link, clock))


def _ended(task: PartTask, link: DriverLink, clock: Clock) -> PartOutcome | StrandlineError:
    running = RunningPart(
        task.job,
        task.part,
        link.deadline,
        link.report,
        link.check,
        task.first_begun_ms,
        link.confirm,
        link.note,
        link.pace,
    )
    try:
        return task.opener(clock).run(running)
    except StrandlineError as error:
        return error
    except Exception as error:  # noqa: BLE001 - told to the driver, and thrown away with the part's attempt
        return PartFailed(f"{type(error).__name__}: {error}", remedy="This is a fault of the program: report it")


def run_on_executor(task: PartTask, rows: Iterable[object]) -> Iterator[object]:
    """For Spark: a part as a function over the rows of a partition, which say nothing."""
    # Spark ends a Python process whose task has left rows unread, and the next one would load all kernels again.
    for _ in rows:
        pass
    run_task(task)
    return iter(())
