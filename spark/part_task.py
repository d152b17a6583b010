"""How an executor runs one part of a bulk job. It never accesses the tables of jobs but asks the driver."""

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
    ChannelBroken,
    DriverReply,
    PartFailed,
    SignedFrames,
    TaskRequest,
    end_request,
    receive_exactly,
)
from strandline.store.bulk_jobs import BulkJob, BulkPart

# The driver replies immediately. If it takes longer than this, it has stopped or is unreachable, and the part stops.
_REPLY_TIMEOUT_S = 30.0
# A grant received within this time is used without another request.
_GRANT_REUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class PartTask:
    """A part as it is sent to an executor, with the driver's address and key."""

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
            self._connection = socket.create_connection(task.address, _REPLY_TIMEOUT_S)
        except OSError as error:
            raise ChannelBroken(f"the driver at {task.address} can't be reached: {error}") from error
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = SignedFrames(
            self._connection, task.key, receive_exactly(self._connection, NONCE_BYTES), is_driver=False
        )
        self._requested_at = self._deadline = clock.monotonic()

    def begin(self) -> None:
        """Start the part, once no other task has it. Raises `PartStopped`."""
        part = self._task.part
        while (reply := self._request(TaskRequest(part=(*part.primary_key, part.epoch)))).wait_s > 0:
            self._clock.sleep(reply.wait_s)

    def deadline(self) -> float:
        """Until when Kafka may be used."""
        if self._clock.monotonic() - self._requested_at >= _GRANT_REUSE_S:
            self.check()
        return self._deadline

    def check(self) -> None:
        """Raises `PartStopped`."""
        self._request(TaskRequest())

    def report(self, counts: AttemptCounts) -> None:
        """Report the counts. Raises `PartStopped`."""
        self._request(TaskRequest(counts=counts.to_json()))

    def confirm(self) -> None:
        """Raises `PartStopped` if, by the store, the part may not run under this lease."""
        self._request(TaskRequest(confirm=True))

    def note(self, counts: AttemptCounts) -> None:
        """Report the counts just before the part ends with an error."""
        # The error matters, not whether this report arrives.
        with suppress(PartStopped):
            self.report(counts)

    def pace(self, samples: int) -> None:
        """Wait until this many samples may land. Raises `PartStopped`."""
        while (reply := self._request(TaskRequest(samples=samples))).wait_s > 0:
            self._clock.sleep(min(reply.wait_s, MAX_WAIT_S))

    def end(self, end: PartOutcome | StrandlineError) -> None:
        """Report how the part has ended. The task must do nothing for it after this."""
        self._exchange(end_request(end))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _request(self, request: TaskRequest) -> DriverReply:
        requested_at = self._clock.monotonic()
        try:
            reply = self._exchange(request)
        except ChannelBroken as error:
            raise PartStopped(f"the driver of {self._task.part.name} is gone: {error.message}") from error
        if reply.stop:
            raise PartStopped(reply.stop)
        self._requested_at, self._deadline = requested_at, requested_at + reply.seconds
        return reply

    def _exchange(self, request: TaskRequest) -> DriverReply:
        self._frames.send(request)
        return DriverReply(**self._frames.receive())


def run_task(task: PartTask, clock: Clock | None = None) -> None:
    """Run a part, and report to the driver how it ended. Raises errors that can't be reported: the task fails then, and
    the driver learns that from Spark.
    """
    clock = clock or SystemClock()
    with closing(DriverLink(task, clock)) as link:
        try:
            link.begin()
        except PartStopped:
            # The lease has ended, or another task had the part: a repeated task does nothing.
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
    except Exception as error:  # noqa: BLE001 - reported to the driver; the part's attempt is discarded
        return PartFailed(f"{type(error).__name__}: {error}", remedy="Report this as a bug")


def run_on_executor(task: PartTask, rows: Iterable[object]) -> Iterator[object]:
    """A part as a function over the rows of a Spark partition, which are ignored."""
    # Spark ends a Python process whose task leaves rows unread, and the next process would load all kernels again.
    for _ in rows:
        pass
    run_task(task)
    return iter(())
