"""Whether the storing thread gets on, as the reading thread sees it.

A call to the store may take as long as the store's own time-outs and retries allow, and a store that is away is tried
again with pauses: neither is a hang. What counts as progress is each turn of the thread, and each answer to a write.
"""

from dataclasses import dataclass

from strandline.clock import Clock
from strandline.node.shard.parts import StoreProgress


@dataclass(slots=True)
class StoringWatch:
    """One storing thread, looked at by one other thread. `turned` is called by the storing thread alone."""

    progress: StoreProgress
    clock: Clock
    _turns: int = 0
    _mark: tuple[int, int] | None = None
    _since: float = 0.0

    def turned(self) -> None:
        """The thread has done a piece of work, or found that none is due."""
        self._turns += 1

    def stuck_s(self) -> float:
        """For how many seconds the thread has made no progress, beyond what calls to the store may take; 0 if it
        has.
        """
        now, mark = self.clock.monotonic(), (self._turns, self.progress.answers())
        if mark != self._mark:
            self._mark, self._since = mark, now
        return max(0.0, now - self._since - self.progress.silence_s)
