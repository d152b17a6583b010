"""Full disks. A process that finds its disk full ends, and is started again when there is free space."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strandline.errors import Fatal

NO_SPACE: Final = ("No space left on device", "Disk quota exceeded")
"""The C library's texts of the errors, which the errors of Java and Spark contain; these have no errno."""
MIN_FREE_BYTES: Final = 16 << 20
"""With fewer free bytes than this, a disk still counts as full for a process that has ended because it was full."""
_NO_SPACE_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT)


class DiskFull(Fatal):
    """A disk has no space for what a process must write. Fatal within the process, but transient: a new process works
    when there is free space.
    """

    transient = True

    def __init__(self, path: Path | str | None) -> None:
        where = f"the disk of {path}" if path is not None else "a disk that this process writes to"
        super().__init__(f"{where} is full", remedy="Free space on it: the process then continues, and nothing is lost")
        self.path = str(path) if path is not None else ""

    def blocks(self) -> Sequence[str]:
        """No text below the message."""
        return ()

    def details(self) -> Mapping[str, object]:
        """The path on the full disk, whose free space the supervisor watches."""
        return {"full_disk": self.path}


def is_full(error: BaseException) -> bool:
    """Whether an error of the operating system says that a disk is full, or that the user's quota is used up."""
    return isinstance(error, OSError) and error.errno in _NO_SPACE_ERRORS


@contextmanager
def raising_disk_full(path: Path) -> Iterator[None]:
    """Raise `DiskFull` with this path if the block fails because a disk is full."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise DiskFull(path) from error
        raise


def is_nearly_full(path: Path) -> bool:
    """Whether the disk of a path, or of its nearest existing parent folder, has too little free space to start again."""
    for folder in (path, *path.parents):
        try:
            found = os.statvfs(folder)
        except OSError:
            continue
        # File systems without a fixed number of inodes report 0 of 0.
        return found.f_bavail * found.f_frsize < MIN_FREE_BYTES or (found.f_files > 0 and found.f_favail == 0)
    return False
