"""A part that is with Spark, as the driver sees it: which task has it, until when that may use Kafka, how it ended."""

import math
import threading

from strandline.clock import Clock
from strandline.errors import Retryable, StrandlineError
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import GRANT_S, LeasedPart, PartEnd, PartStopped
from strandline.spark.part_channel import DriverReply, PartFailed, TaskRequest, parse_end

# Of a grant, for clocks that run at different speeds, and for what was begun just before its end.
_SLACK = 0.1
# A task that Spark runs beside another one asks again after so long.
_DUPLICATE_RETRY_S = 0.5


class TaskNotRun(Retryable):
    """Spark did not run the task of a part. That is no fault of the part."""


class PartSlot:
    """One part under one lease. Used by the thread of its connection and by that of the runner.

    One task may have it, ever: a task that Spark runs again, or beside another one, gets no grant. A retry is a new
    lease. Once the slot is closed nothing is granted, and the part has ended when the last grant is over.
    """

    def __init__(self, leased: LeasedPart, clock: Clock, grant_s: float = GRANT_S) -> None:
        self.leased = leased
        self._clock, self._grant_s = clock, grant_s
        self._lock = threading.Lock()
        self._task: object = None
        self._closed: StrandlineError | None = None
        self._end: PartOutcome | StrandlineError | None = None
        self._granted_until = -math.inf

    @property
    def is_taken(self) -> bool:
        """Whether a task has begun the part."""
        return self._task is not None

    def answer(self, task: object, request: TaskRequest) -> DriverReply:
        """What the driver has to say to a task. `task` is what tells it from any other."""
        counts = request.reported
        if counts is not None:
            self.leased.report(counts)
        try:
            self.leased.check()
            if request.confirm:
                self.leased.confirm()
        except StrandlineError as error:
            self.close(error)
        with self._lock:
            if self._task is None and not self._closed:
                self._task = task
            if task is not self._task:
                is_over = self._closed is not None or self._end is not None
                return (
                    DriverReply(stop="the part's lease is over") if is_over else DriverReply(wait_s=_DUPLICATE_RETRY_S)
                )
            if request.is_end:
                self._end = parse_end(request)
                return DriverReply()
            if self._closed is not None:
                return DriverReply(stop=self._closed.message)
            wait_s = self.leased.wait_s(request.samples) if request.samples is not None else 0.0
            seconds = min(self._grant_s, self.leased.remaining_s())
            self._granted_until = self._clock.monotonic() + (1 + _SLACK) * seconds
            return DriverReply(seconds, wait_s)

    def close(self, why: StrandlineError) -> None:
        """Grant nothing from now on. The first reason counts."""
        with self._lock:
            self._closed = self._closed or why

    def lost(self, task: object, why: str) -> None:
        """The connection of a task is over."""
        if task is self._task:
            # It counts as a failure, as that of a worker does: a part that ends its process every time must not be
            # tried for ever.
            self.close(PartFailed(f"its task on an executor was lost: {why}"))

    def over(self, why: str) -> None:
        """Spark has nothing left to do for it."""
        if not self.is_taken:
            self.close(TaskNotRun(f"Spark did not run it: {why or 'the task has ended'}", remedy="It is tried again"))
        else:
            self.close(PartFailed(f"its task on an executor was lost: {why or 'the task has ended'}"))

    def ended(self) -> PartEnd | None:
        """How the part has ended, if it has: nothing of it lands under this lease after that."""
        with self._lock:
            if isinstance(self._end, PartOutcome):
                return PartEnd(self.leased.part, self._end)
            if self._end is not None:
                # A task that was stopped does not know why.
                stopped = self._closed if isinstance(self._end, PartStopped) else None
                return PartEnd(self.leased.part, error=stopped or self._end)
            if self._closed is not None and self._clock.monotonic() >= self._granted_until:
                return PartEnd(self.leased.part, error=self._closed)
        return None

    @property
    def is_stopping(self) -> bool:
        """Whether its task is to end, and has not said yet that it has."""
        return self._closed is not None and self._end is None
