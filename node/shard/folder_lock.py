"""The lock that a process, such as a shard's, holds on its folder as long as it lives.

It is acquired before the shard is taken. Otherwise a second start by mistake would fence the running process, and then
find the index in use.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.disk import raising_disk_full
from strandline.errors import ExitCode, Fatal


class FolderInUse(Fatal):
    """Another process uses the folder, and therefore has the shard."""

    exit_code = ExitCode.FENCED


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder, which is created if it is missing. The lock also ends with the process. Raises `FolderInUse` or
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
                f"another process uses {folder}",
                remedy="Stop that process first, or set shard.data_dir to another folder",
            ) from None
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether another process has locked the folder. Locks the folder for a moment, in which others are refused."""
    try:
        with locked(folder):
            return False
    except FolderInUse:
        return True
