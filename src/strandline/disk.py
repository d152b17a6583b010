"""A full disk: it ends the process that needs the room, which is started again once there is some."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strandline.errors import Fatal

NO_SPACE: Final = ("No space left on device", "Disk quota exceeded")
"""How the C library words it, and with it Java and Spark, whose errors have no number."""
MIN_FREE_BYTES: Final = 16 << 20
"""A disk with fewer free bytes than this still counts as full for a process that has just failed for want of room."""
_NO_SPACE_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT)


class DiskFull(Fatal):
    """There is no room for what a process has to write. Within the process it is final; a new process may work once
    there is room again.
    """

    transient = True

    def __init__(self, path: Path | str | None) -> None:
        where = f"the disk of {path}" if path is not None else "a disk that this process writes to"
        super().__init__(f"{where} is full", remedy="Free space on it: the process goes on by itself, and nothing is lost")
        self.path = str(path) if path is not None else ""

    def blocks(self) -> Sequence[str]:
        """Nothing below the message."""
        return ()

    def details(self) -> Mapping[str, object]:
        """Which disk is to be watched for room."""
        return {"full_disk": self.path}


def is_full(error: BaseException) -> bool:
    """Whether an error of the operating system says that a disk, or the part of it that the user may have, is full."""
    return isinstance(error, OSError) and error.errno in _NO_SPACE_ERRORS


@contextmanager
def raising_disk_full(path: Path) -> Iterator[None]:
    """Raise `DiskFull` with the path where something inside finds no room."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise DiskFull(path) from error
        raise


def is_nearly_full(path: Path) -> bool:
    """Whether the disk of a path, or of the nearest folder above it that exists, is still as good as full."""
    for folder in (path, *path.parents):
        try:
            found = os.statvfs(folder)
        except OSError:
            continue
        # Some file systems have no fixed number of files, and report 0 of 0.
        return found.f_bavail * found.f_frsize < MIN_FREE_BYTES or (found.f_files > 0 and found.f_favail == 0)
    return False
