"""Where a log ends, asked now and then without waiting: a broker that hangs must not stop the thread that reads."""

from dataclasses import dataclass

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.node.shard.log import EndsRequest, LogEnds, PartitionLog
from strandline.recovery.present import Present


@dataclass(frozen=True, slots=True)
class EndsSnapshot:
    """The ends of a log, with the present, the monotonic time and the reader's position as they were *before* the
    brokers were asked: whatever had reached the log by then lies below its ends.
    """

    ends: LogEnds
    present: int
    asked: float
    position: int


@dataclass(frozen=True, slots=True)
class _Asked:
    question: EndsRequest
    present: int
    at: float
    position: int


class EndsWatch:
    """Sends one request at a time, and returns its answer once that has come. Used by the thread that reads."""

    def __init__(self, log: PartitionLog, present: Present, clock: Clock) -> None:
        self._log, self._present, self._clock = log, present, clock
        self._asked: _Asked | None = None
        self._sent_at = float("-inf")
        self._answered_at = float("-inf")

    @property
    def waiting_s(self) -> float:
        """For how long the brokers have owed an answer; 0 if they don't."""
        return self._clock.monotonic() - self._asked.at if self._asked is not None else 0.0

    def answered_since(self, moment: float) -> bool:
        """Whether an answer has come after this monotonic time."""
        return self._answered_at > moment

    def ask(self, position: int, pause: float) -> None:
        """Ask the brokers, unless they owe an answer or were asked within the last `pause` seconds."""
        now = self._clock.monotonic()
        if self._asked is None and now - self._sent_at >= pause:
            # Before it is sent: a present that is read later would count records that the answer knows nothing of.
            present = self._present.now_ms()
            self._sent_at = now
            self._asked = _Asked(self._log.ask_ends(), present, now, position)

    def take(self) -> EndsSnapshot | None:
        """The answer, once; None while there is none. Raises `LogUnreachable`; `ask` then sends another request."""
        asked = self._asked
        if asked is None:
            return None
        try:
            ends = asked.question.answer()
        except StrandlineError:
            self._asked = None
            raise
        if ends is None:
            return None
        self._asked, self._answered_at = None, self._clock.monotonic()
        return EndsSnapshot(ends, asked.present, asked.at, asked.position)
