"""Detects holders that no longer live, by their heartbeats and this process's monotonic clock.

A holder changes a value in the store (a counter) while it lives. A watcher that has seen the same value for a full term
may conclude that the holder is gone. Wall clocks of different machines are never compared.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from strandline.clock import Clock


@dataclass(frozen=True, slots=True)
class _Seen:
    heartbeat: Hashable
    since: float


class HeartbeatWatch:
    """Remembers since when each heartbeat value has been seen. For one thread."""

    def __init__(self, clock: Clock, term_s: float) -> None:
        self._clock, self._term_s = clock, term_s
        self._seen: dict[Hashable, _Seen] = {}

    def is_expired(self, key: Hashable, heartbeat: Hashable) -> bool:
        """Whether every look within a full term has found this heartbeat value for what is held."""
        now, seen = self._clock.monotonic(), self._seen.get(key)
        if seen is None or seen.heartbeat != heartbeat:
            self._seen[key] = _Seen(heartbeat, now)
            return False
        return now - seen.since >= self._term_s

    def forget(self, key: Hashable) -> None:
        """Stop watching something that is no longer held."""
        self._seen.pop(key, None)

    def keep(self, keys: set[Hashable]) -> None:
        """Forget all but these."""
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}
