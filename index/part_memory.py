"""Shared memory for columns of keys that Java reads concurrently with Python: an anonymous file that both have mapped.

The layout, little endian: the number of valid rows as u64; the part ids as u32; the first times as i64; the last times
as i64. It has a fixed, generous capacity, since pages that were never written take no memory; for more, another one is
created.
"""

import mmap
import os
import weakref

import numpy as np

from strandline.arrays import I64s, U32s

_NUMBER = 8
_MIN_ROWS = 1 << 16


class PartMemory:
    """Space for some rows. The arrays stay valid as long as they are referenced, and the path as long as this object
    is.
    """

    def __init__(self, needed: int) -> None:
        """Zeroed memory for at least this many rows."""
        self.rows = rows = _capacity(needed)
        ids = 4 * rows
        size = _NUMBER + ids + 2 * _NUMBER * rows
        file = os.memfd_create("strandline-keys", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, file)
        os.ftruncate(file, size)
        self._path = f"/proc/self/fd/{file}"
        memory = _Mapped(file, size)
        self._length = np.frombuffer(memory, dtype=np.int64, count=1)
        self.part_id: U32s = np.frombuffer(memory, dtype=np.uint32, count=rows, offset=_NUMBER)
        self.start: I64s = np.frombuffer(memory, dtype=np.int64, count=rows, offset=_NUMBER + ids)
        self.end: I64s = np.frombuffer(memory, dtype=np.int64, count=rows, offset=_NUMBER + ids + _NUMBER * rows)

    @property
    def path(self) -> str:
        """The path at which this process, and no other, may open the file."""
        return self._path

    def set_length(self, rows: int) -> None:
        """Set the number of valid rows."""
        self._length[0] = rows


class _Mapped(mmap.mmap):
    """Frees its memory when no array of it is referenced in Python, although Java may still have it mapped: Java unmaps
    it when it is collected, which may be never. A reader then sees zeros.
    """

    def __del__(self) -> None:
        self.madvise(mmap.MADV_REMOVE)


def _capacity(needed: int) -> int:
    """Return a power of four times the minimum, so that keys are moved only a few times."""
    room = _MIN_ROWS
    while room < needed:
        room *= 4
    return room
