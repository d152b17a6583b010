"""Whether others still hold what they hold: by their signs of life, and by this process's monotonic clock alone.

A holder changes a sign in the store (a counter) while it lives. A watcher that has seen the same sign for a whole term
may conclude that the holder is gone. No wall clock is compared with another machine's.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from strandline.clock import Clock


@dataclass(frozen=True, slots=True)
class _Seen:
    sign: Hashable
    since: float


class HeartbeatWatch:
    """Remembers which signs were seen since when. One thread uses it."""

    def __init__(self, clock: Clock, term_s: float) -> None:
        self._clock, self._term_s = clock, term_s
        self._seen: dict[Hashable, _Seen] = {}

    def is_expired(self, holding: Hashable, sign: Hashable) -> bool:
        """Whether this sign of whoever holds something was there for a whole term, each time that it was looked at."""
        now, seen = self._clock.monotonic(), self._seen.get(holding)
        if seen is None or seen.sign != sign:
            self._seen[holding] = _Seen(sign, now)
            return False
        return now - seen.since >= self._term_s

    def forget(self, holding: Hashable) -> None:
        """No longer watch what nobody holds."""
        self._seen.pop(holding, None)

    def keep(self, holdings: set[Hashable]) -> None:
        """Forget all but these."""
        self._seen = {holding: seen for holding, seen in self._seen.items() if holding in holdings}
