"""A folder on local disk for pages that memory has no room for.

Nothing in it is durable, and nothing in it is needed after a restart: Kafka still has what it holds. Each page is a
file of its own, so that what a flush has stored leaves the disk at once. A file lives as long as somebody refers to it:
a query that took its snapshot before a flush can still read it.
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
    """There is no room for another page: the folder's limit is reached."""


class SpillFailed(Fatal):
    """The folder can't be written to."""


class SpillDamaged(Fatal):
    """A page on disk is not what was written."""


class SpilledPage:
    """The bytes of one page in a file. The file goes when the last reference to this does."""

    __slots__ = ("__weakref__", "_checksum", "length", "path")

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.length = len(data)
        self._checksum = digest(data)

    def load(self) -> bytes:
        """Read the bytes back; `SpillDamaged`, with the file named, if they are not those that were written."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise self._damaged(f"can't be read ({error.strerror})") from error
        if len(data) != self.length:
            raise self._damaged(f"has {len(data)} bytes, but {self.length} were written")
        if digest(data) != self._checksum:
            raise self._damaged("has other bytes than were written")
        return data

    def _damaged(self, how: str) -> SpillDamaged:
        return SpillDamaged(
            f"the spilled page {self.path} {how}",
            remedy="Check the disk, and start the shard again: it reads these samples from Kafka once more",
        )


class SpillFolder:
    """Pages on local disk, at most `limit_bytes` of them. Any thread may call anything.

    Nobody else may write into the folder; one folder serves one process.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self.limit = limit_bytes
        self._lock = Lock()
        self._used = 0
        # Sizes of files that are gone. A queue and not a subtraction, because the collector may run at any point of any
        # thread, also of one that holds the lock.
        self._freed: deque[int] = deque()
        self._serial = itertools.count()

    @property
    def used(self) -> int:
        """Bytes on disk."""
        with self._lock:
            return self._count_freed()

    def clear(self) -> int:
        """Make the folder, and remove what an earlier process left in it; how many pages. Only for a start."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            left = list(self.path.glob(f"*{_SUFFIX}"))
            for page in left:
                page.unlink(missing_ok=True)
        except OSError as error:
            raise DiskFull(self.path) if is_full(error) else self._failed(error) from error
        return len(left)

    def write(self, data: bytes, bucket: int, group: int) -> SpilledPage:
        """Put a page on disk. Raises `SpillFull`, `DiskFull` or `SpillFailed`, and then leaves nothing behind."""
        with self._lock:
            used = self._count_freed()
            if used + len(data) > self.limit:
                # A query that failed may have left its view in a cycle, which nobody has collected yet.
                gc.collect()
                used = self._count_freed()
            if used + len(data) > self.limit:
                raise SpillFull(
                    f"the spill folder {self.path} holds {used} of {self.limit} bytes, and a page of {len(data)} bytes "
                    "is to go there",
                    remedy="See why flushing is behind, or allow more memory or a larger spill; then start the shard "
                    "again: nothing is lost, Kafka has the samples",
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
        """Count off what is gone. The caller holds the lock."""
        while self._freed:
            self._used -= self._freed.popleft()
        return self._used

    def _remove(self, path: Path, length: int) -> None:
        path.unlink(missing_ok=True)
        self._freed.append(length)

    def _failed(self, error: OSError) -> SpillFailed:
        return SpillFailed(
            f"the spill folder {self.path} can't be used: {error.strerror}",
            remedy="Make it a folder that the node's user may write to",
        )
