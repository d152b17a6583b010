"""Memory for columns of keys that Java reads beside Python: a file without a name, which both have mapped.

The layout, little endian: how many rows have a meaning as u64; the part ids as u32; the first times as i64; the last
times as i64. It does not grow: whoever needs more room makes another one. There is plenty, since what was never written
takes no memory.
"""

import mmap
import os
import weakref

import numpy as np

from strandline.arrays import I64s, U32s

_NUMBER = 8
_MIN_ROWS = 1 << 16


class PartMemory:
    """Room for some rows. The arrays live as long as somebody has one, and the path as long as this does."""

    def __init__(self, needed: int) -> None:
        """All of it is zero, and there is room for so many rows at least."""
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
        """Where this process, and none other, may open the file."""
        return self._path

    def set_length(self, rows: int) -> None:
        """The first rows have a meaning now."""
        self._length[0] = rows


class _Mapped(mmap.mmap):
    """Gives its memory back when nobody here has an array of it any more, though Java may still have it mapped: that
    goes when Java cleans up, which may be never. Whoever reads it then reads zeros.
    """

    def __del__(self) -> None:
        self.madvise(mmap.MADV_REMOVE)


def _capacity(needed: int) -> int:
    """A power of four times the fewest, so that keys move a few times in their lives."""
    room = _MIN_ROWS
    while room < needed:
        room *= 4
    return room
