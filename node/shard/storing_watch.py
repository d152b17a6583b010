"""Whether the storing thread gets on, as the reading thread sees it.

A call to the store may take as long as the store's own time-outs and retries allow, and a store that is away is tried
again with pauses: neither is a hang. What counts as progress is each turn of the thread, and each answer to a write.
"""

from dataclasses import dataclass

from strandline.clock import Clock
from strandline.node.shard.parts import StoreProgress


@dataclass(slots=True)
class StoringWatch:
    """One storing thread, looked at by one other thread. `iterated` is called by the storing thread alone."""

    progress: StoreProgress
    clock: Clock
    _iterations: int = 0
    _last_progress: tuple[int, int] | None = None
    _since: float = 0.0

    def iterated(self) -> None:
        """The thread has done a piece of work, or found that none is due."""
        self._iterations += 1

    def stuck_s(self) -> float:
        """For how many seconds the thread has made no progress, beyond what calls to the store may take; 0 if it
        has.
        """
        now, progress = self.clock.monotonic(), (self._iterations, self.progress.answers())
        if progress != self._last_progress:
            self._last_progress, self._since = progress, now
        return max(0.0, now - self._since - self.progress.silence_s)
