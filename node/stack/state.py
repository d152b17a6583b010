"""The state folder of a stack: the paths of its files, its lock, and the files that a wipe may remove."""

import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from strandline.clock import Clock, SystemClock, wait_until
from strandline.node.stack.errors import DiskTooFull, StackBusy, StateFolderUnusable
from strandline.node.stack.record import StackRecord

_OWN_FOLDERS = ("kafka", "cassandra", "conf", "logs", "tmp")
_UNSAFE = frozenset(",:;\"'$%\\{}\n\r\t")
"""Characters with a special meaning in a class path, in Kafka's properties or in a logging pattern."""


class StateFolder:
    """The paths in one state folder, its record and its lock.

    The constructor does not access the disk; `prepare` creates the folder. The process that runs the stack holds the
    lock. The kernel releases it when that process ends in any way.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.lock_file = self.root / "lock"
        self.record_file = self.root / "stack.json"
        self.keeper_log = self.root / "keeper.log"
        """The output of a detached keeper, such as the error with which it ended."""

    def conf(self, server: str) -> Path:
        return self.root / "conf" / server

    def data(self, server: str) -> Path:
        return self.root / server

    def temporary(self, server: str) -> Path:
        return self.root / "tmp" / server

    def log(self, name: str) -> Path:
        """The log of `name`, which it rotates itself."""
        return self.root / "logs" / f"{name}.log"

    def output(self, name: str) -> Path:
        """The standard output and error of `name` since its last start. It is short."""
        return self.root / "logs" / f"{name}.out"

    def prepare(self) -> None:
        """Create the folder, or check that the existing one can be used for a stack."""
        unsafe = sorted(_UNSAFE.intersection(str(self.root)))
        if unsafe:
            raise StateFolderUnusable(
                f"the path of the state folder {self.root} contains {' '.join(map(repr, unsafe))}, which the servers' "
                "configuration does not support",
                remedy="Set stack.state_dir to a path without these characters",
            )
        foreign = [name for name in _OWN_FOLDERS if (self.root / name).exists()]
        if foreign and not self.record_file.exists():
            raise StateFolderUnusable(
                f"the state folder {self.root} contains {', '.join(foreign)}, which was not created by a stack",
                remedy="Set stack.state_dir to an empty or new folder",
            )
        try:
            # The configuration in it may contain passwords.
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self.root / f".writable-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise StateFolderUnusable(
                f"the state folder {self.root} can't be written: {error.strerror}",
                remedy="Make the user that runs the stack its owner, or set stack.state_dir to another folder",
            ) from error

    def require_free_disk(self, min_bytes: int) -> None:
        free = shutil.disk_usage(self.root).free
        if free < min_bytes:
            raise DiskTooFull(
                f"the disk of {self.root} has {free >> 20} MiB free, less than the {min_bytes >> 20} MiB that "
                "stack.min_free_disk requires",
                remedy="Free some space, or set stack.state_dir to a folder on another disk",
            )

    def lock(self, *, clock: Clock | None = None) -> "StateLock":
        """Lock the folder. Raises `StackBusy` if another process has locked it."""
        lock = StateLock(self.lock_file)
        # `is_held` of another process acquires the lock for an instant, so this tries more than once.
        if not wait_until(lock.acquire, timeout=0.5, clock=clock or SystemClock(), poll=0.02):
            raise StackBusy(
                f"a stack is already running in {self.root}",
                remedy="See `strandline stack status`, or stop it with `strandline stack down`",
            )
        return lock

    def is_held(self) -> bool:
        """Whether a process has locked the folder, and so runs a stack in it."""
        if not self.lock_file.exists():
            return False
        with StateLock(self.lock_file) as lock:
            return not lock.acquire()

    def read(self) -> StackRecord | None:
        """The record; None if it does not exist or can't be parsed."""
        try:
            return StackRecord.from_json(self.record_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def write(self, record: StackRecord) -> None:
        """Replace the record atomically. Only the lock's holder may call this."""
        partial = self.record_file.with_suffix(".partial")
        try:
            partial.write_text(record.to_json(), encoding="utf-8")
            partial.replace(self.record_file)
        except OSError as error:
            raise StateFolderUnusable(
                f"{self.record_file} can't be written: {error.strerror}",
                remedy="Free some space there, or make the user that runs the stack the owner of the state folder",
            ) from error

    def size(self, server: str) -> int:
        """The size of the server's data on disk, in bytes."""
        total = 0
        for folder, _, names in os.walk(self.data(server)):
            for name in names:
                try:
                    total += (Path(folder) / name).lstat().st_blocks * 512
                except FileNotFoundError:  # A running server deletes files meanwhile.
                    continue
        return total

    def _own_files(self) -> tuple[Path, ...]:
        # The record is removed late: while it exists, the folders are known to belong to a stack.
        return (self.keeper_log, self.record_file.with_suffix(".partial"), self.record_file, self.lock_file)

    def wipe(self) -> list[Path]:
        """Remove the files of a stack, and the folder itself if it is then empty. Returns the removed paths. If one of
        the folders is a symbolic link, the link is removed, and not its target.
        """
        if not self.record_file.exists():
            return []
        with self.lock():
            removed = []
            for path in (*(self.root / name for name in _OWN_FOLDERS), *self._own_files()):
                if path.is_symlink() or path.is_file():
                    path.unlink()
                elif path.is_dir():
                    shutil.rmtree(path)
                else:
                    continue
                removed.append(path)
        if not any(self.root.iterdir()):
            self.root.rmdir()
            removed.append(self.root)
        return removed


class StateLock:
    """An exclusive lock on a file, held by this process. Child processes don't inherit it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> bool:
        """Acquire the lock if it is free. Returns whether it was acquired."""
        # Not inherited: a server must not hold the lock longer than its keeper.
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # If the folder was wiped after we opened the file, we have locked a deleted file.
            if self._path.stat().st_ino == os.fstat(self._fd).st_ino:
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        self.release()
        return False

    def release(self) -> None:
        """Release the lock. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
