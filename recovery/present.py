"""The present: the greatest time that at least two independent clocks have reached.

There are three: the node's own, that of a server of the store, and the brokers'. One of them may be wrong by any
amount: a clock that runs ahead is alone with its time, and one that is behind only delays what waits for the present.
Nothing that can't be undone (closing a bucket, calling an hour ready, dropping what expired) follows from one alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from strandline.clock import Clock

STORE_POLL_INTERVAL_S = 30.0
"""How often the store is asked for its time. In between its clock is taken to run as fast as the monotonic one."""

SETTLED_AFTER_S = 60.0
"""What expires counts as expired once the present has passed its date in two looks so far apart."""

DISAGREEMENT_MS = 60_000
"""Clocks that differ by more than this are reported."""

_LEAP_MS = 60_000
_LEAP_BELIEVED_AFTER_S = 600.0
_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClockReadings:
    """What the clocks show at one moment, in milliseconds. `store` is None for a store without a server, and `broker`
    until a record with a time was read. `written` is the newest time in the manifest, when that was read: it was the
    present of an owner before, and decides nothing, but the present must not lie before it. `broker_behind` is by how
    much the newest record's time lies before a present at which it was not in the log yet; it decides nothing either.
    """

    own: int
    store: int | None = None
    broker: int | None = None
    written: int | None = None
    broker_behind: int = 0

    @property
    def present(self) -> int:
        """The greatest time that two of the clocks have reached; the own clock's where the store has none."""
        if self.store is None:
            return self.own
        lower, upper = (self.own, self.store) if self.own < self.store else (self.store, self.own)
        return lower if self.broker is None else max(lower, min(upper, self.broker))

    @property
    def differences(self) -> dict[str, int]:
        """By how much each clock is ahead of the present. The newest record, or row, may be old: the manifest is never
        behind, and the brokers only if the record is known to have come later than it says.
        """
        present = self.present
        found = {"node": self.own - present}
        if self.store is not None:
            found["store"] = self.store - present
        if self.broker is not None:
            found["broker"] = max(0, self.broker - present) or -self.broker_behind
        if self.written is not None:
            found["manifest"] = max(0, self.written - present)
        return found

    @property
    def disagreement(self) -> int:
        """The difference of the clock that is furthest off."""
        return max(self.differences.values(), key=abs)


def describe_wrong_clocks(differences: Mapping[str, int]) -> str:
    """Which clocks are off by so much that it is reported; empty if none is."""
    off = {name: ahead for name, ahead in differences.items() if abs(ahead) > DISAGREEMENT_MS}
    return "; ".join(
        f"the clock {name!r} is {abs(ahead) / 1000:,.0f} s {'ahead of' if ahead > 0 else 'behind'} the others"
        for name, ahead in off.items()
    )


class SteadyClock:
    """The own clock without its leaps: after a leap of more than a minute it goes on from where it was, until the leap
    has lasted for ten minutes.

    A machine that was suspended looks the same, and is late for ten minutes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._seen = clock.now_ms() - int(clock.monotonic() * 1000)
        self._leapt_at: float | None = None

    def now_ms(self) -> int:
        """The time, in milliseconds since the epoch."""
        now = self._clock.monotonic()
        elapsed = int(now * 1000)
        current = self._clock.now_ms() - elapsed
        if abs(current - self._seen) > _LEAP_MS:
            _LOG.warning("the wall clock has leapt; it is not believed for ten minutes", by_ms=current - self._seen)
            self._leapt_at = now
        self._seen = current
        if self._leapt_at is not None and now - self._leapt_at >= _LEAP_BELIEVED_AFTER_S:
            self._leapt_at = None
        # A leap and one back again leave nothing to wait for.
        if self._leapt_at is None or abs(current - self._offset) <= _LEAP_MS:
            self._leapt_at, self._offset = None, current
        return self._offset + elapsed


@dataclass(frozen=True, slots=True)
class _Heard:
    """A clock's time, and what the monotonic clock showed then."""

    time: int
    at: float

    def at_moment(self, now: float) -> int:
        return self.time + int((now - self.at) * 1000)


class Present:
    """The present of one process. One thread may ask the store and another report records; any may read the time."""

    def __init__(self, clock: Clock, server_time: Callable[[], int | None]) -> None:
        """`server_time` asks a server of the store for its time; None from a store without servers. It may wait, and
        raises what the store raises.
        """
        self._clock, self._server_time = clock, server_time
        self._own = SteadyClock(clock)
        self._store: _Heard | None = None
        self._broker: _Heard | None = None
        self._written: _Heard | None = None
        self._broker_behind = 0
        self._asked: float | None = None
        self._first_look: _Heard | None = None
        self._settled = 0
        self._complained = False

    def poll_store_clock(self) -> None:
        """Ask the store for its time, if that was not done lately."""
        before = self._clock.monotonic()
        if self._asked is not None and before - self._asked < STORE_POLL_INTERVAL_S:
            return
        time = self._server_time()
        after = self._clock.monotonic()
        self._asked = after
        # Taken somewhere between the two. The earlier time is the careful choice.
        self._store = _Heard(time, after) if time is not None else None

    def observe_records(self, newest_time: int, came_after: int = 0) -> None:
        """Records with this newest time were read: the brokers' clock had reached it. At the present `came_after` they
        were not in the log yet: a clock that has given them an earlier time is behind.
        """
        if newest_time > 0:
            self._broker = _Heard(newest_time, self._clock.monotonic())
            self._broker_behind = max(0, came_after - newest_time)

    def observe_manifest(self, newest_written: int) -> None:
        """A manifest with this newest time of writing was read: an owner's present had reached it."""
        self._written = _Heard(newest_written, self._clock.monotonic())

    def readings(self) -> ClockReadings:
        """What the clocks show now."""
        now, store, broker, written = self._clock.monotonic(), self._store, self._broker, self._written
        return ClockReadings(
            self._own.now_ms(),
            store.at_moment(now) if store is not None else None,
            broker.at_moment(now) if broker is not None else None,
            written.at_moment(now) if written is not None else None,
            self._broker_behind,
        )

    def now_ms(self) -> int:
        """The present, in milliseconds since the epoch."""
        readings = self.readings()
        present = readings.present
        self._look(readings, present)
        return present

    def settled_ms(self) -> int:
        """The latest time that the present had passed in two looks a minute apart; 0 before the second."""
        self.now_ms()
        return self._settled

    def _look(self, readings: ClockReadings, present: int) -> None:
        now = self._clock.monotonic()
        first = self._first_look
        if first is None:
            self._first_look = _Heard(present, now)
        elif now - first.at >= SETTLED_AFTER_S:
            self._settled = min(first.time, present)
            self._first_look = _Heard(present, now)
        disagrees = abs(readings.disagreement) > DISAGREEMENT_MS
        if disagrees and not self._complained:
            _LOG.warning(
                "clocks disagree",
                ahead_ms=readings.differences,
                remedy="Check time synchronisation of this machine, of Cassandra and of the brokers",
            )
        self._complained = disagrees
