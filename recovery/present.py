"""The present: the latest time that at least two of three independent clocks have reached.

The clocks are the node's own, that of a server of the store, and the brokers'. Any one of them may be wrong by any
amount: a clock that is ahead is outvoted, and a clock that is behind only delays what waits for the present.
Irreversible steps (closing a bucket, marking an hour as ready, dropping expired data) never depend on one clock alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from strandline.clock import Clock

STORE_POLL_INTERVAL_S = 30.0
"""How often the store's clock is read. In between, it is assumed to run as fast as the monotonic clock."""

SETTLED_AFTER_S = 60.0
"""Data counts as expired once the present has passed its expiry time in two looks this far apart."""

DISAGREEMENT_MS = 60_000
"""Clocks that differ by more than this are reported."""

_JUMP_MS = 60_000
_JUMP_ACCEPTED_AFTER_S = 600.0
_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClockReadings:
    """The times of all clocks at one moment, in milliseconds. `store` is None for a store without a server, and
    `broker` until a record with a time was read. `written` is the newest time in the manifest when it was read. It was
    the present of an earlier owner and decides nothing, but the present should not be before it. `broker_behind` is how
    far the newest record's time is before a present at which the record was not in the log yet. It decides nothing
    either.
    """

    own: int
    store: int | None = None
    broker: int | None = None
    written: int | None = None
    broker_behind: int = 0

    @property
    def present(self) -> int:
        """The latest time that two of the clocks have reached; the own clock's time if the store has none."""
        if self.store is None:
            return self.own
        lower, upper = (self.own, self.store) if self.own < self.store else (self.store, self.own)
        return lower if self.broker is None else max(lower, min(upper, self.broker))

    @property
    def differences(self) -> dict[str, int]:
        """How far each clock is ahead of the present; negative if behind. The newest record or row may be old. So the
        manifest never counts as behind, and the brokers only if the record is known to have arrived later than its
        time.
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
        """The difference of the clock that is furthest from the present."""
        return max(self.differences.values(), key=abs)


def describe_wrong_clocks(differences: Mapping[str, int]) -> str:
    """The clocks whose difference is large enough to be reported, as text; empty if there are none."""
    off = {name: ahead for name, ahead in differences.items() if abs(ahead) > DISAGREEMENT_MS}
    return "; ".join(
        f"the clock {name!r} is {abs(ahead) / 1000:,.0f} s {'ahead of' if ahead > 0 else 'behind'} the others"
        for name, ahead in off.items()
    )


class SteadyClock:
    """The own clock without jumps. After a jump of more than a minute it continues from the time before, until the jump
    has lasted for ten minutes.

    A machine that was suspended looks the same, so its clock is late for ten minutes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._seen = clock.now_ms() - int(clock.monotonic() * 1000)
        self._jumped_at: float | None = None

    def now_ms(self) -> int:
        """The time, in milliseconds since the epoch."""
        now = self._clock.monotonic()
        elapsed = int(now * 1000)
        current = self._clock.now_ms() - elapsed
        if abs(current - self._seen) > _JUMP_MS:
            _LOG.warning("the wall clock has jumped; the jump is ignored for ten minutes", by_ms=current - self._seen)
            self._jumped_at = now
        self._seen = current
        if self._jumped_at is not None and now - self._jumped_at >= _JUMP_ACCEPTED_AFTER_S:
            self._jumped_at = None
        # A jump that was reversed needs no waiting.
        if self._jumped_at is None or abs(current - self._offset) <= _JUMP_MS:
            self._jumped_at, self._offset = None, current
        return self._offset + elapsed


@dataclass(frozen=True, slots=True)
class _Reading:
    """A clock's time, and the monotonic time when it was read."""

    time: int
    at: float

    def at_moment(self, now: float) -> int:
        return self.time + int((now - self.at) * 1000)


class Present:
    """The present of one process. One thread may read the store's clock and another report records; any thread may read
    the time.
    """

    def __init__(self, clock: Clock, server_time: Callable[[], int | None]) -> None:
        """`server_time` returns the time of a server of the store, or None from a store without servers. It may block,
        and raises the store's errors.
        """
        self._clock, self._server_time = clock, server_time
        self._own = SteadyClock(clock)
        self._store: _Reading | None = None
        self._broker: _Reading | None = None
        self._written: _Reading | None = None
        self._broker_behind = 0
        self._polled: float | None = None
        self._first_look: _Reading | None = None
        self._settled = 0
        self._has_warned = False

    def poll_store_clock(self) -> None:
        """Read the store's clock, unless that was done recently."""
        before = self._clock.monotonic()
        if self._polled is not None and before - self._polled < STORE_POLL_INTERVAL_S:
            return
        time = self._server_time()
        after = self._clock.monotonic()
        self._polled = after
        # The server read its clock at some time between the two: the later one gives the earlier, safer present.
        self._store = _Reading(time, after) if time is not None else None

    def observe_records(self, newest_time: int, came_after: int = 0) -> None:
        """Records with this newest time were read, so the brokers' clock has reached it. At the present `came_after`,
        they were not in the log yet: if their times are earlier, the brokers' clock is behind.
        """
        if newest_time > 0:
            self._broker = _Reading(newest_time, self._clock.monotonic())
            self._broker_behind = max(0, came_after - newest_time)

    def observe_manifest(self, newest_written: int) -> None:
        """A manifest with this newest time of writing was read: an owner's present had reached it."""
        self._written = _Reading(newest_written, self._clock.monotonic())

    def readings(self) -> ClockReadings:
        """The times of all clocks now."""
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
        self._check(readings, present)
        return present

    def settled_ms(self) -> int:
        """The latest time that the present had passed in two looks a minute apart; 0 before the second look."""
        self.now_ms()
        return self._settled

    def _check(self, readings: ClockReadings, present: int) -> None:
        now = self._clock.monotonic()
        first = self._first_look
        if first is None:
            self._first_look = _Reading(present, now)
        elif now - first.at >= SETTLED_AFTER_S:
            self._settled = min(first.time, present)
            self._first_look = _Reading(present, now)
        disagrees = abs(readings.disagreement) > DISAGREEMENT_MS
        if disagrees and not self._has_warned:
            _LOG.warning(
                "clocks disagree",
                ahead_ms=readings.differences,
                remedy="Check time synchronisation of this machine, of Cassandra and of the brokers",
            )
        self._has_warned = disagrees
