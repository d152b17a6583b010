"""How the gateway's clock compares with the brokers'.

The gateway checks the times of samples by its own clock, and what it refuses for good the sender drops. So a wrong
clock must not refuse anything for good. The brokers' clocks are compared with it by the times that brokers give to
records (`message.timestamp.type=LogAppendTime`), which come with their acknowledgements. A comparison is about the
clock as it was set then: after a leap, which the monotonic clock does not have, it is worth nothing.
"""

from dataclasses import dataclass

import structlog

from strandline.clock import Clock
from strandline.node.gateway.throttle import Throttle

_LOG = structlog.get_logger(__name__)

TOLERANCE_MS = 60_000
"""Clocks that differ by more than this disagree. Those that are synchronised differ by some milliseconds."""
_FRESH_S = 60.0
# What two readings of both clocks may differ by without a leap. Both are adjusted alike while time is synchronised.
_LEAP_MS = 1_000


@dataclass(frozen=True, slots=True)
class OwnTime:
    """The gateway's clocks at one moment: the wall clock in milliseconds, the monotonic one in seconds."""

    time_ms: int
    monotonic: float

    def leap_ms(self, before: "OwnTime") -> int:
        """By how much the wall clock was set forward or back since; 0 if it just went on."""
        leap = self.time_ms - before.time_ms - round(1000 * (self.monotonic - before.monotonic))
        return leap if abs(leap) > _LEAP_MS else 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of the clocks.

    `difference_ms` is the time of the broker less that of the gateway, 0 if they may well agree, and None if the topic
    has producers' times: then there is nothing to compare with.
    """

    difference_ms: int | None
    made_at: OwnTime

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

    def now(self) -> OwnTime:
        """The gateway's own time, to be noted when samples are checked or a record is sent."""
        return OwnTime(self._clock.now_ms(), self._clock.monotonic())

    def is_compared(self, at: OwnTime) -> bool:
        """Whether the clock, as it was set at this time, was compared later or within the minute before."""
        newest = self._newest
        if newest is None or at.monotonic - newest.made_at.monotonic >= _FRESH_S:
            return False
        return at.leap_ms(newest.made_at) == 0

    def disagreement(self, at: OwnTime) -> str:
        """Why the gateway's clock, as it was set at this time, may be wrong; empty if it agrees with the brokers'."""
        newest = self._newest
        if newest is None or not self.is_compared(at):
            leap = self.now().leap_ms(at) or (at.leap_ms(newest.made_at) if newest is not None else 0)
            if leap:
                return f"the gateway's clock has leapt by {leap / 1000:+.0f} s since it was compared with Kafka's"
            return "the gateway's clock could not be compared with Kafka's"
        return described(newest) if newest.disagrees else ""

    def acknowledged(self, sent: OwnTime, at_broker: int | None) -> None:
        """A record that was sent at this time is acknowledged; `at_broker` is the time that the broker gave it, None if
        it gave none.
        """
        now = self.now()
        if at_broker is None:
            self._newest = Comparison(None, now)
        elif not now.leap_ms(sent):  # Else the two readings make no interval.
            self._newest = Comparison(difference_ms(sent.time_ms, at_broker, now.time_ms), now)
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
