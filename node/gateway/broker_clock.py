"""Compares the gateway's clock with the brokers' clocks.

The gateway checks sample times by its own clock, and senders drop samples that it rejects permanently. A gateway whose
clock is wrong therefore must not reject samples permanently. Acknowledgements have the times that brokers assign to
records (`message.timestamp.type=LogAppendTime`), which are compared with the gateway's clock. A comparison becomes
invalid when the gateway's clock is set, which shows as a leap against the monotonic clock.
"""

from dataclasses import dataclass

import structlog

from strandline.clock import Clock
from strandline.node.gateway.throttle import Throttle

_LOG = structlog.get_logger(__name__)

TOLERANCE_MS = 60_000
"""Clocks that differ by more than this disagree. Synchronised clocks differ by a few milliseconds."""
_FRESH_S = 60.0
# The wall clock may drift this far from the monotonic clock without a leap. NTP adjusts the rate of both equally.
_LEAP_MS = 1_000


@dataclass(frozen=True, slots=True)
class OwnTime:
    """The gateway's clocks at one moment: the wall clock in milliseconds, the monotonic one in seconds."""

    time_ms: int
    monotonic: float

    def leap_ms(self, before: "OwnTime") -> int:
        """By how much the wall clock was set forward or back since `before`; 0 if it was not set."""
        leap = self.time_ms - before.time_ms - round(1000 * (self.monotonic - before.monotonic))
        return leap if abs(leap) > _LEAP_MS else 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison of the clocks.

    `difference_ms` is the broker's time minus the gateway's; 0 if they are consistent; None if the topic has producers'
    times (CreateTime), with which no comparison is possible.
    """

    difference_ms: int | None
    made_at: OwnTime

    @property
    def disagrees(self) -> bool:
        """Whether one of the clocks is wrong."""
        return self.difference_ms is not None and abs(self.difference_ms) > TOLERANCE_MS


def difference_ms(sent: int, at_broker: int, acknowledged: int) -> int:
    """By how much the broker's time of a record is before the record was sent (negative) or after it was acknowledged
    (positive), by the gateway's clock. 0 if it is in between, regardless of how long the delivery took.
    """
    return min(0, at_broker - sent) or max(0, at_broker - acknowledged)


class BrokerClock:
    """The latest comparison. One thread writes it, and any thread may read it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._newest: Comparison | None = None
        self._logging = Throttle(clock)

    @property
    def newest(self) -> Comparison | None:
        """The latest comparison; None before the first one."""
        return self._newest

    def now(self) -> OwnTime:
        """The gateway's current time. Callers keep it when they check samples or send a record."""
        return OwnTime(self._clock.now_ms(), self._clock.monotonic())

    def is_compared(self, at: OwnTime) -> bool:
        """Whether the clock was compared after `at` or in the minute before it, and has not been set in between."""
        newest = self._newest
        if newest is None or at.monotonic - newest.made_at.monotonic >= _FRESH_S:
            return False
        return at.leap_ms(newest.made_at) == 0

    def disagreement(self, at: OwnTime) -> str:
        """Why the gateway's clock may have been wrong at this time; empty if it agreed with the brokers' clocks."""
        newest = self._newest
        if newest is None or not self.is_compared(at):
            leap = self.now().leap_ms(at) or (at.leap_ms(newest.made_at) if newest is not None else 0)
            if leap:
                return f"the gateway's clock has leapt by {leap / 1000:+.0f} s since it was compared with Kafka's"
            return "the gateway's clock could not be compared with Kafka's"
        return described(newest) if newest.disagrees else ""

    def acknowledged(self, sent: OwnTime, at_broker: int | None) -> None:
        """A record that was sent at `sent` has been acknowledged. `at_broker` is the time that the broker assigned to
        it, or None if it assigned none.
        """
        now = self.now()
        if at_broker is None:
            self._newest = Comparison(None, now)
        elif not now.leap_ms(sent):  # After a leap, the two times don't bound an interval.
            self._newest = Comparison(difference_ms(sent.time_ms, at_broker, now.time_ms), now)
            if self._newest.disagrees and self._logging.is_due():
                _LOG.warning(
                    "the clocks of this gateway and of a broker disagree: requests with samples outside of the time "
                    "limits are answered with 503",
                    clocks=described(self._newest),
                )


def described(comparison: Comparison) -> str:
    """The difference as a text."""
    milliseconds = comparison.difference_ms or 0
    direction = "behind" if milliseconds > 0 else "ahead of"
    return f"the gateway's clock is {abs(milliseconds) // 1000} s {direction} Kafka's"
