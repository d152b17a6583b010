"""A folder on local disk for pages that don't fit into memory.

Nothing in it is durable or needed after a restart: Kafka still has the samples. Each page is a separate file, so that
what a flush has stored is deleted at once. A file exists as long as it is referenced: a query whose snapshot precedes a
flush can still read it.
"""

import gc
import itertools
import weakref
from collections import deque
from pathlib import Path
from threading import Lock

from strandline.digest import digest
from strandline.disk import DiskFull, is_full
from strandline.errors import Fatal

_SUFFIX = ".page"


class SpillFull(Fatal):
    """The folder's limit is reached."""


class SpillFailed(Fatal):
    """The folder is not writable."""


class SpillDamaged(Fatal):
    """A page on disk differs from what was written."""


class SpilledPage:
    """The bytes of one page in a file. The file is deleted with the last reference to this object."""

    __slots__ = ("__weakref__", "_checksum", "length", "path")

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.length = len(data)
        self._checksum = digest(data)

    def load(self) -> bytes:
        """Read the bytes back. Raise `SpillDamaged`, with the file's name, if they differ from what was written."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise self._damaged(f"can't be read ({error.strerror})") from error
        if len(data) != self.length:
            raise self._damaged(f"has {len(data)} bytes, but {self.length} were written")
        if digest(data) != self._checksum:
            raise self._damaged("differs from what was written")
        return data

    def _damaged(self, how: str) -> SpillDamaged:
        return SpillDamaged(
            f"the spilled page {self.path} {how}",
            remedy="Check the disk, and start the shard again: it reads these samples from Kafka again",
        )


class SpillFolder:
    """Pages on local disk, at most `limit_bytes` in total. Thread-safe.

    Each process needs its own folder, with no other files in it.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self.limit = limit_bytes
        self._lock = Lock()
        self._used = 0
        # Sizes of deleted files. A queue instead of a subtraction, because the garbage collector may run at any point
        # of any thread, including one that holds the lock.
        self._freed: deque[int] = deque()
        self._serial = itertools.count()

    @property
    def used(self) -> int:
        """Bytes on disk."""
        with self._lock:
            return self._count_freed()

    def clear(self) -> int:
        """Create the folder, and delete the pages of an earlier process. Return their number. Only for a start."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            left = list(self.path.glob(f"*{_SUFFIX}"))
            for page in left:
                page.unlink(missing_ok=True)
        except OSError as error:
            raise DiskFull(self.path) if is_full(error) else self._failed(error) from error
        return len(left)

    def write(self, data: bytes, bucket: int, group: int) -> SpilledPage:
        """Write a page to disk. Raises `SpillFull`, `DiskFull` or `SpillFailed`, and then leaves no file."""
        with self._lock:
            used = self._count_freed()
            if used + len(data) > self.limit:
                # A failed query may have left its view in a reference cycle that was not collected yet.
                gc.collect()
                used = self._count_freed()
            if used + len(data) > self.limit:
                raise SpillFull(
                    f"the spill folder {self.path} has {used} of {self.limit} bytes in use: no space for a page of "
                    f"{len(data)} bytes",
                    remedy="Find out why flushing is behind, or allow more memory or a larger spill; then start the "
                    "shard again: nothing is lost, Kafka has the samples",
                )
            self._used += len(data)
        page = SpilledPage(self.path / f"{bucket}-{group}-{next(self._serial)}{_SUFFIX}", data)
        remove = weakref.finalize(page, self._remove, page.path, len(data))
        try:
            page.path.write_bytes(data)
        except OSError as error:
            remove()
            if is_full(error):
                raise DiskFull(self.path) from error
            raise self._failed(error) from error
        return page

    def _count_freed(self) -> int:
        """Subtract the sizes of deleted files, and return the bytes in use. The caller holds the lock."""
        while self._freed:
            self._used -= self._freed.popleft()
        return self._used

    def _remove(self, path: Path, length: int) -> None:
        path.unlink(missing_ok=True)
        self._freed.append(length)

    def _failed(self, error: OSError) -> SpillFailed:
        return SpillFailed(
            f"the spill folder {self.path} is not writable: {error.strerror}",
            remedy="Make it a folder that the node's user may write to",
        )
