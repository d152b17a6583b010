"""One process a folder: the lock that a shard's process holds on its folder for as long as it lives.

It is taken before the shard is. A second start by mistake would otherwise fence the process that works, and then find
the index in use.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.disk import raising_disk_full
from strandline.errors import ExitCode, Fatal


class FolderInUse(Fatal):
    """Another process works in the folder, and so has the shard."""

    exit_code = ExitCode.FENCED


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder, which is made if it is missing. The lock ends with the process, too. Raises `FolderInUse` or
    `DiskFull`.
    """
    with raising_disk_full(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(
                f"another process works in {folder}",
                remedy="Stop that one first, or set shard.data_dir to another folder",
            ) from None
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether another process holds the folder. For a moment this one does: whoever wants it just then is refused."""
    try:
        with locked(folder):
            return False
    except FolderInUse:
        return True
