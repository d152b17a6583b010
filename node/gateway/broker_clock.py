"""How the gateway's clock compares with the brokers'.

The gateway checks the times of samples by its own clock, and what it refuses for good the sender drops. So a wrong
clock must not refuse anything for good. The brokers' clocks are compared with it by the times that brokers give to
records (`message.timestamp.type=LogAppendTime`), which come with their acknowledgements.
"""

from dataclasses import dataclass

import structlog

from strandline.clock import Clock
from strandline.node.gateway.throttle import Throttle

_LOG = structlog.get_logger(__name__)

TOLERANCE_MS = 60_000
"""Clocks that differ by more than this disagree. Those that are synchronised differ by some milliseconds."""
_FRESH_S = 60.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of the clocks.

    `difference_ms` is the time of the broker less that of the gateway, 0 if they may well agree, and None if the topic
    has producers' times: then there is nothing to compare with. `made_at` is monotonic, in seconds.
    """

    difference_ms: int | None
    made_at: float

    @property
    def disagrees(self) -> bool:
        """Whether one of the clocks must be wrong."""
        return self.difference_ms is not None and abs(self.difference_ms) > TOLERANCE_MS


def difference_ms(sent: int, at_broker: int, acknowledged: int) -> int:
    """How far the time that a broker gave to a record lies before the record was sent (negative), or after it was
    acknowledged, by the gateway's clock. In between it agrees, however long the delivery took.
    """
    return min(0, at_broker - sent) or max(0, at_broker - acknowledged)


class BrokerClock:
    """The newest comparison. One thread compares, any thread reads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._newest: Comparison | None = None
        self._logging = Throttle(clock)

    @property
    def newest(self) -> Comparison | None:
        """None before the first one."""
        return self._newest

    @property
    def is_fresh(self) -> bool:
        """Whether the clocks were compared within the last minute."""
        newest = self._newest
        return newest is not None and self._clock.monotonic() - newest.made_at < _FRESH_S

    def now_ms(self) -> int:
        """The gateway's own time, to be noted when a record is sent."""
        return self._clock.now_ms()

    def acknowledged(self, sent: int, at_broker: int | None) -> None:
        """A record that was sent at this time is acknowledged; `at_broker` is the time that the broker gave it, None if
        it gave none.
        """
        now, monotonic = self._clock.now_ms(), self._clock.monotonic()
        if at_broker is None:
            self._newest = Comparison(None, monotonic)
        elif sent <= now:  # Else the own clock was set back meanwhile, and the two readings make no interval.
            self._newest = Comparison(difference_ms(sent, at_broker, now), monotonic)
            if self._newest.disagrees and self._logging.is_due():
                _LOG.warning(
                    "the clocks of this gateway and of a broker disagree: samples that are out of time are put off",
                    clocks=described(self._newest),
                )


def described(comparison: Comparison) -> str:
    """What differs by how much, for people."""
    milliseconds = comparison.difference_ms or 0
    direction = "behind" if milliseconds > 0 else "ahead of"
    return f"the gateway's clock is {abs(milliseconds) // 1000} s {direction} Kafka's"
