"""Detects a hanging storing thread, from the reading thread.

A call to the store may take as long as the store's timeouts and retries, and calls to an unreachable store are retried
with pauses. Neither is a hang. Each iteration of the thread and each answer to a write counts as progress.
"""

from dataclasses import dataclass

from strandline.clock import Clock
from strandline.node.shard.parts import StoreProgress


@dataclass(slots=True)
class StoringWatch:
    """Monitors one storing thread, which calls `iterated`. Only the reading thread calls `stuck_s`."""

    progress: StoreProgress
    clock: Clock
    _iterations: int = 0
    _last_progress: tuple[int, int] | None = None
    _since: float = 0.0

    def iterated(self) -> None:
        """The thread has completed an iteration."""
        self._iterations += 1

    def stuck_s(self) -> float:
        """How long the thread has made no progress, beyond the time that calls to the store may take; 0 if it has."""
        now, progress = self.clock.monotonic(), (self._iterations, self.progress.answers())
        if progress != self._last_progress:
            self._last_progress, self._since = progress, now
        return max(0.0, now - self._since - self.progress.silence_s)
