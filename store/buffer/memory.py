"""How much memory the buffers of a process may take together, and what happens past that."""

from threading import Lock
from typing import Protocol

from strandline.store.buffer.spill import SpillFolder


class Spillable(Protocol):
    """A buffer as its budget sees it."""

    @property
    def bucket(self) -> int:
        """The bucket that it belongs to."""
        ...

    def spill_oldest(self, folder: SpillFolder) -> bool:
        """Move the oldest page that is in memory to disk; whether there was one."""
        ...


class MemoryBudget:
    """Counts the bytes of pages, rows and dictionaries of all buffers that share it. Any thread may call anything.

    The limit is hard for pages: after each seal pages move to `spill` until the sum is within it. Rows that are not
    sealed and dictionaries can't move; a limit below their size has every page on disk, and is exceeded all the same.
    The first pages to go are the oldest of the open bucket, because a frozen bucket's are about to be freed anyway.
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
        """Count bytes in, or, below zero, out."""
        with self._lock:
            self._used += nbytes

    def register(self, buffer: Spillable) -> None:
        """From now on ask this buffer too for pages."""
        with self._lock:
            self._buffers.append(buffer)

    def unregister(self, buffer: Spillable) -> None:
        """Ask this buffer no more: it has no pages."""
        with self._lock:
            self._buffers.remove(buffer)

    def spill_excess(self) -> None:
        """Move pages to disk until the sum is within the limit or none is left in memory.

        Raises `SpillFull`, `DiskFull` or `SpillFailed`; what could not be moved is still in memory.
        """
        with self._spilling:
            while self.used > self.limit and self._spill_one():
                pass

    def _spill_one(self) -> bool:
        with self._lock:
            # The newest bucket is the open one; of the frozen ones the oldest is freed first.
            buffers = sorted(self._buffers, key=lambda buffer: buffer.bucket, reverse=True)
        return any(buffer.spill_oldest(self.spill) for buffer in buffers)
