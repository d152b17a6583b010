"""The memory budget that the buffers of a process share, and spilling beyond it."""

from threading import Lock
from typing import Protocol

from strandline.store.buffer.spill import SpillFolder


class Spillable(Protocol):
    """A buffer, as the budget uses it."""

    @property
    def bucket(self) -> int:
        """The buffer's bucket."""
        ...

    def spill_oldest(self, folder: SpillFolder) -> bool:
        """Move the oldest page that is in memory to disk. Return whether there was one."""
        ...


class MemoryBudget:
    """Counts the bytes of pages, rows and dictionaries of all buffers that share it. Thread-safe.

    The limit is strict for pages: after each seal, pages are spilled until the sum is within it. Unsealed rows and
    dictionaries can't be spilled; a limit below their size has every page on disk, and is exceeded. Pages of the open
    bucket are spilled first, oldest first, because those of a frozen bucket are about to be freed.
    """

    def __init__(self, limit_bytes: int, spill: SpillFolder) -> None:
        self.limit = limit_bytes
        self.spill = spill
        self._lock = Lock()
        self._spilling = Lock()
        self._used = 0
        self._buffers: list[Spillable] = []

    @property
    def used(self) -> int:
        """Bytes in memory."""
        with self._lock:
            return self._used

    def add(self, nbytes: int) -> None:
        """Add to the bytes in use; negative numbers subtract."""
        with self._lock:
            self._used += nbytes

    def register(self, buffer: Spillable) -> None:
        """Include a buffer in spilling."""
        with self._lock:
            self._buffers.append(buffer)

    def unregister(self, buffer: Spillable) -> None:
        """Exclude a buffer from spilling: it has no pages."""
        with self._lock:
            self._buffers.remove(buffer)

    def spill_excess(self) -> None:
        """Spill pages until the sum is within the limit or no page is left in memory.

        Raises `SpillFull`, `DiskFull` or `SpillFailed`; pages that could not be spilled stay in memory.
        """
        with self._spilling:
            while self.used > self.limit and self._spill_one():
                pass

    def _spill_one(self) -> bool:
        with self._lock:
            # The newest bucket is the open one; of the frozen ones, the oldest is freed first.
            buffers = sorted(self._buffers, key=lambda buffer: buffer.bucket, reverse=True)
        return any(buffer.spill_oldest(self.spill) for buffer in buffers)
