"""Requests the ends of a log without waiting for the answer: a hanging broker must not stop the reading thread."""

from dataclasses import dataclass

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.node.shard.log import EndsRequest, LogEnds, PartitionLog
from strandline.recovery.present import Present


@dataclass(frozen=True, slots=True)
class EndsSnapshot:
    """The ends of a log, with the present, the monotonic time and the reader's position *before* the request was sent:
    everything that had reached the log by then is below its ends.
    """

    ends: LogEnds
    present: int
    requested_at: float
    position: int


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    request: EndsRequest
    present: int
    at: float
    position: int


class EndsWatch:
    """Sends one request at a time, and returns its answer once it has arrived. Used by the reading thread."""

    def __init__(self, log: PartitionLog, present: Present, clock: Clock) -> None:
        self._log, self._present, self._clock = log, present, clock
        self._pending: _PendingRequest | None = None
        self._sent_at = float("-inf")
        self._answered_at = float("-inf")

    @property
    def waiting_s(self) -> float:
        """The age of the pending request in seconds; 0 if there is none."""
        return self._clock.monotonic() - self._pending.at if self._pending is not None else 0.0

    def answered_since(self, moment: float) -> bool:
        """Whether an answer has arrived after this monotonic time."""
        return self._answered_at > moment

    def request(self, position: int, pause: float) -> None:
        """Send a request, unless one is pending or was sent within the last `pause` seconds."""
        now = self._clock.monotonic()
        if self._pending is None and now - self._sent_at >= pause:
            # Read before sending: a later present would cover records that are missing in the answer.
            present = self._present.now_ms()
            self._sent_at = now
            self._pending = _PendingRequest(self._log.request_ends(), present, now, position)

    def take(self) -> EndsSnapshot | None:
        """The answer, once; None while there is none. Raises `LogUnreachable`, after which `request` sends another."""
        pending = self._pending
        if pending is None:
            return None
        try:
            ends = pending.request.answer()
        except StrandlineError:
            self._pending = None
            raise
        if ends is None:
            return None
        self._pending, self._answered_at = None, self._clock.monotonic()
        return EndsSnapshot(ends, pending.present, pending.at, pending.position)
