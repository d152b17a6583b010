"""The driver's state of a part that runs on Spark: which task has it, until when that task may use Kafka, and how it
ended.
"""

import math
import threading

from strandline.clock import Clock
from strandline.errors import Retryable, StrandlineError
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import GRANT_S, LeasedPart, PartEnd, PartStopped
from strandline.spark.part_channel import DriverReply, PartFailed, TaskRequest, parse_end

# Share of a grant that is added for clocks that run at different speeds, and for operations in flight at its end.
_SLACK = 0.1
# A task that Spark runs concurrently with another one repeats its request after this time.
_DUPLICATE_RETRY_S = 0.5


class TaskNotRun(Retryable):
    """Spark did not run the task of a part. The part is not at fault."""


class PartSlot:
    """One part under one lease. Used by the threads of its connections and by the runner's thread.

    Only one task ever gets the part: a task that Spark repeats or runs concurrently gets no grant. A retry is a new
    lease. Once the slot is closed, nothing is granted, and the part has ended when its last grant has expired.
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
        """Whether a task has started the part."""
        return self._task is not None

    def answer(self, task: object, request: TaskRequest) -> DriverReply:
        """The reply to a task's request. `task` identifies the task."""
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
        """Stop granting. The first reason counts."""
        with self._lock:
            self._closed = self._closed or why

    def connection_lost(self, task: object, why: str) -> None:
        """The connection of a task was lost."""
        if task is self._task:
            # A failure, like the loss of a worker: a part that kills its process every time must not be retried
            # forever.
            self.close(PartFailed(f"its task on an executor was lost: {why}"))

    def task_ended(self, why: str) -> None:
        """Spark has finished with the task."""
        if not self.is_taken:
            self.close(
                TaskNotRun(f"Spark did not run it: {why or 'the task has ended'}", remedy="It is retried automatically")
            )
        else:
            self.close(PartFailed(f"its task on an executor was lost: {why or 'the task has ended'}"))

    def ended(self) -> PartEnd | None:
        """How the part has ended, None if it has not. Nothing of it lands under this lease after that."""
        with self._lock:
            if isinstance(self._end, PartOutcome):
                return PartEnd(self.leased.part, self._end)
            if self._end is not None:
                # A stopped task does not know the reason.
                stopped = self._closed if isinstance(self._end, PartStopped) else None
                return PartEnd(self.leased.part, error=stopped or self._end)
            if self._closed is not None and self._clock.monotonic() >= self._granted_until:
                return PartEnd(self.leased.part, error=self._closed)
        return None

    @property
    def is_stopping(self) -> bool:
        """Whether its task has to stop, and has not reported its end yet."""
        return self._closed is not None and self._end is None
