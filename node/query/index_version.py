"""The version of a shard's label lists: a page of shared memory that the shard's process writes and the front reads.

The lists of all label names, and of all values of a label, change only when series come or go. The front caches some of
these lists and must know at once when one is outdated. A request to the shard would be most of the cost of such an
answer. So each shard's process publishes the version in a file that both processes map: after every step of its work,
and before it answers anything that arrives later.
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
# The number of the version, the two times of the span, and a checksum of the three, by which a reader detects that they
# are being written.
_WORDS = struct.Struct("<4q")
_UNKNOWN = 0
_SALT = 0x53_4C_45_44


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """Identifies the lists of one or several shards. `last_start` and `first_end`: all their series existed in
    between.
    """

    numbers: tuple[int, ...]
    last_start: int
    first_end: int

    def holds_for(self, within: TimeRange | None) -> bool:
        """Whether every series existed in a range, so that lists over the range are those of all series."""
        return within is None or (self.last_start <= within.last and self.first_end >= within.first)


def joined_version(versions: list[IndexVersion]) -> IndexVersion:
    """The version of the merged lists of several shards."""
    return IndexVersion(
        tuple(number for version in versions for number in version.numbers),
        max(version.last_start for version in versions),
        min(version.first_end for version in versions),
    )


def version_path(socket: Path) -> Path:
    """The file in which the process that listens at a socket publishes its version."""
    return socket.with_suffix(".version")


class IndexVersionPage:
    """The page of the shard of this process. One thread at a time may publish."""

    def __init__(self, path: Path | None) -> None:
        """Creates a new file. A front that has mapped an earlier file still sees the earlier one. Without a path, or if
        the file can't be created, nothing is published, and the front caches nothing.
        """
        self._page = _new_page(path) if path is not None else None
        # Random, so that numbers of different processes differ.
        self._number = secrets.randbits(61) + 1
        self._published: tuple[object, Span] | None = None

    def publish(self, lists: object | None, span: Span) -> None:
        """Publish a version. `lists` identifies the lists; None if they must not be cached."""
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
        """Publish that the lists must not be cached, and unmap the page. Idempotent."""
        if self._page is not None:
            self.publish(None, NO_KEYS)
            page, self._page = self._page, None
            page.close()

    def _write(self, number: int, last_start: int, first_end: int) -> None:
        if self._page is not None:
            words = _WORDS.pack(number, last_start, first_end, _checksum(number, last_start, first_end))
            self._page[: _WORDS.size] = words


class IndexVersionReader:
    """The page of another process."""

    def __init__(self, path: Path) -> None:
        """Raises `OSError` or `ValueError` if there is no page."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._page = mmap.mmap(file, _SIZE, prot=mmap.PROT_READ)
        finally:
            os.close(file)

    def read(self) -> IndexVersion | None:
        """The current version; None if lists must not be cached, or a version is being written."""
        number, last_start, first_end, checksum = _WORDS.unpack_from(self._page)
        if number == _UNKNOWN or checksum != _checksum(number, last_start, first_end):
            return None
        return IndexVersion((number,), last_start, first_end)

    def close(self) -> None:
        """Unmap the page."""
        self._page.close()


def _new_page(path: Path) -> mmap.mmap | None:
    try:
        path.unlink(missing_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # Allocated now: a write to the mapped page on a full disk would kill the process.
            os.posix_fallocate(file, 0, _SIZE)
            return mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
    except OSError:
        return None


def _checksum(number: int, last_start: int, first_end: int) -> int:
    return number ^ last_start ^ first_end ^ _SALT
