"""Which version of its label lists a shard gives: a page of memory that its process writes and the front reads.

The lists of all label names, and of all values of one, change only when series come or go. The front keeps some of them
and has to know at once when one is no longer true; to ask the shard would be most of what such an answer costs. So each
shard's process publishes the version in a file that both have mapped: after every step of its work, and before
anything that it is asked later.
"""

import mmap
import os
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path

from strandline.index.part_columns import NO_KEYS, Span
from strandline.time_range import TimeRange

_SIZE = mmap.PAGESIZE
# The number of the version, the two times of the span, and a check over the three: a reader that comes while it is
# written sees that these do not fit.
_WORDS = struct.Struct("<4q")
_UNKNOWN = 0
_SALT = 0x53_4C_45_44


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """What identifies the lists of some shards, and when their series were there."""

    numbers: tuple[int, ...]
    last_start: int
    first_end: int

    def holds_for(self, within: TimeRange | None) -> bool:
        """Whether every series was there in a range, so that lists over the range are those of all series."""
        return within is None or (self.last_start <= within.last and self.first_end >= within.first)


def joined(versions: list[IndexVersion]) -> IndexVersion:
    """The version of lists that several shards' were merged into."""
    return IndexVersion(
        tuple(number for version in versions for number in version.numbers),
        max(version.last_start for version in versions),
        min(version.first_end for version in versions),
    )


def version_path(socket: Path) -> Path:
    """Where a process that listens at a socket publishes the version of its lists."""
    return socket.with_suffix(".version")


class IndexVersionPage:
    """The page of one process's shard. One thread at a time publishes."""

    def __init__(self, path: Path | None) -> None:
        """A new file: a process that has mapped the one before goes on seeing that. Without a path, or where no file
        can be made, nothing is published, and nothing is kept by others.
        """
        self._page = _new_page(path) if path is not None else None
        # Numbers of another process must not be mistaken for this one's.
        self._number = secrets.randbits(61) + 1
        self._published: tuple[object, Span] | None = None

    def publish(self, lists: object | None, span: Span) -> None:
        """The lists are those that this identifies; None if they should not be kept."""
        if lists is None:
            if self._published is not None:
                self._published = None
                self._write(_UNKNOWN, 0, 0)
            return
        if self._published is None or self._published[0] != lists:
            self._number += 1
        elif self._published[1] == span:
            return
        self._published = (lists, span)
        self._write(self._number, span.last_start, span.first_end)

    def close(self) -> None:
        """Publish that the lists should not be kept, and give the memory back. Closing twice does nothing."""
        if self._page is not None:
            self.publish(None, NO_KEYS)
            page, self._page = self._page, None
            page.close()

    def _write(self, number: int, last_start: int, first_end: int) -> None:
        if self._page is not None:
            words = _WORDS.pack(number, last_start, first_end, _check(number, last_start, first_end))
            self._page[: _WORDS.size] = words


class IndexVersionReader:
    """The page of another process."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError` or `ValueError` if there is none."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._page = mmap.mmap(file, _SIZE, prot=mmap.PROT_READ)
        finally:
            os.close(file)

    def read(self) -> IndexVersion | None:
        """The version of now; None if lists should not be kept, or one is just being published."""
        number, last_start, first_end, check = _WORDS.unpack_from(self._page)
        if number == _UNKNOWN or check != _check(number, last_start, first_end):
            return None
        return IndexVersion((number,), last_start, first_end)

    def close(self) -> None:
        """Give the memory back."""
        self._page.close()


def _new_page(path: Path) -> mmap.mmap | None:
    try:
        path.unlink(missing_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # The place is taken now: to write where a disk is full would end the process.
            os.posix_fallocate(file, 0, _SIZE)
            return mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
    except OSError:
        return None


def _check(number: int, last_start: int, first_end: int) -> int:
    return number ^ last_start ^ first_end ^ _SALT
