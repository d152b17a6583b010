"""Which edition of its lists a shard gives: a page of memory that its process writes and the front reads.

The lists of all labels, and of all values of one, change only when series come or go. The front keeps some of them, and
has to know at once when one is no longer true; asking would be most of what such an answer costs. So each shard's
process tells it in memory that both have: after every step of its work, and before anything that it is asked later.
"""

import mmap
import os
import secrets
import struct
from dataclasses import dataclass

from strandline.index.part_columns import Span
from strandline.time_range import TimeRange

_SIZE = mmap.PAGESIZE
# The number of the edition, the two times of the span, and all three together: whoever reads while it is written sees
# that these do not fit.
_WORDS = struct.Struct("<4q")
_UNKNOWN = 0
_SALT = 0x53_4C_45_44


@dataclass(frozen=True, slots=True)
class Edition:
    """What identifies the lists of some shards, and when their series were there."""

    numbers: tuple[int, ...]
    last_start: int
    first_end: int

    def holds_for(self, within: TimeRange | None) -> bool:
        """Whether every series was there in a range, so that lists over the range are those of all series."""
        return within is None or (self.last_start <= within.last and self.first_end >= within.first)


def joined(editions: list[Edition]) -> Edition:
    """The edition of lists that several shards' were merged into."""
    return Edition(
        tuple(number for edition in editions for number in edition.numbers),
        max(edition.last_start for edition in editions),
        min(edition.first_end for edition in editions),
    )


class EditionPage:
    """The page of one process's shard. One thread at a time tells."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.file = os.memfd_create("strandline-edition", os.MFD_CLOEXEC)
        os.ftruncate(self.file, _SIZE)
        self._page = mmap.mmap(self.file, _SIZE)
        # Numbers of another process must not be mistaken for this one's.
        self._number = secrets.randbits(61) + 1
        self._told: tuple[object, Span] | None = None

    def tell(self, lists: object | None, span: Span) -> None:
        """The lists are those that this identifies; None if they should not be kept."""
        if lists is None:
            if self._told is not None:
                self._told = None
                self._write(_UNKNOWN, 0, 0)
            return
        if self._told is None or self._told[0] != lists:
            self._number += 1
        elif self._told[1] == span:
            return
        self._told = (lists, span)
        self._write(self._number, span.last_start, span.first_end)

    def close(self) -> None:
        """Give the memory back. Whoever reads it keeps what it last saw, and sees by the link that nobody writes."""
        self._page.close()
        os.close(self.file)

    def _write(self, number: int, last_start: int, first_end: int) -> None:
        self._page[: _WORDS.size] = _WORDS.pack(number, last_start, first_end, _check(number, last_start, first_end))


class EditionReader:
    """The page of another process."""

    def __init__(self, file: int) -> None:
        """Takes the file over."""
        try:
            self._page = mmap.mmap(file, _SIZE, prot=mmap.PROT_READ)
        finally:
            os.close(file)

    def read(self) -> Edition | None:
        """The edition of now; None if lists should not be kept, or one is just being told."""
        try:
            number, last_start, first_end, check = _WORDS.unpack_from(self._page)
        except ValueError:
            return None  # Another thread has closed it.
        if number == _UNKNOWN or check != _check(number, last_start, first_end):
            return None
        return Edition((number,), last_start, first_end)

    def close(self) -> None:
        """Give the memory back."""
        self._page.close()


def _check(number: int, last_start: int, first_end: int) -> int:
    return number ^ last_start ^ first_end ^ _SALT
