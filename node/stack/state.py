"""The state folder: where each file of a stack lies, who holds the folder, and what may be removed from it."""

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
"""Characters that mean something in a class path, in Kafka's properties or in a logging pattern."""


class StateFolder:
    """Paths within one state folder, its record and its lock.

    Making one touches nothing; `prepare` makes the folder. The lock is held by whoever runs the stack for as long as
    it does, and the kernel lets go of it when that process ends, however it ends.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.lock_file = self.root / "lock"
        self.record_file = self.root / "stack.json"
        self.keeper_log = self.root / "keeper.log"
        """What a detached keeper has to say: why it ended, if not by request."""

    def conf(self, server: str) -> Path:
        return self.root / "conf" / server

    def data(self, server: str) -> Path:
        return self.root / server

    def temporary(self, server: str) -> Path:
        return self.root / "tmp" / server

    def log(self, name: str) -> Path:
        """The log that `name` writes and rotates itself."""
        return self.root / "logs" / f"{name}.log"

    def output(self, name: str) -> Path:
        """What `name` writes to its standard output and error: little, and from this start only."""
        return self.root / "logs" / f"{name}.out"

    def prepare(self) -> None:
        """Make the folder, or see that the one that is there is fit for a stack."""
        unsafe = sorted(_UNSAFE.intersection(str(self.root)))
        if unsafe:
            raise StateFolderUnusable(
                f"the state folder {self.root} has {' '.join(map(repr, unsafe))} in its path, which the servers' "
                "configuration can't hold",
                remedy="Set stack.state_dir to a path of plain characters",
            )
        foreign = [name for name in _OWN_FOLDERS if (self.root / name).exists()]
        if foreign and not self.record_file.exists():
            raise StateFolderUnusable(
                f"the state folder {self.root} holds {', '.join(foreign)}, which no stack made",
                remedy="Set stack.state_dir to an empty or new folder",
            )
        try:
            # The servers' passwords, where they have some, lie in here.
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = self.root / f".writable-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise StateFolderUnusable(
                f"the state folder {self.root} can't be written: {error.strerror}",
                remedy="Give it to the user that runs the stack, or set stack.state_dir to another folder",
            ) from error

    def require_free_disk(self, at_least: int) -> None:
        free = shutil.disk_usage(self.root).free
        if free < at_least:
            raise DiskTooFull(
                f"the disk of {self.root} has {free >> 20} MiB free, less than the {at_least >> 20} MiB that "
                "stack.min_free_disk asks for",
                remedy="Free some space, or set stack.state_dir to a folder on another disk",
            )

    def lock(self, *, clock: Clock | None = None) -> "StateLock":
        """Hold the folder, or raise `StackBusy`."""
        lock = StateLock(self.lock_file)
        # `held` takes the lock for an instant to see whether it can: a second look tells that from a real holder.
        if not wait_until(lock.acquire, timeout=0.5, clock=clock or SystemClock(), poll=0.02):
            raise StackBusy(
                f"a stack is already running in {self.root}",
                remedy="See `strandline stack status`, or stop it with `strandline stack down`",
            )
        return lock

    def is_held(self) -> bool:
        """Whether somebody runs a stack here at this moment."""
        if not self.lock_file.exists():
            return False
        with StateLock(self.lock_file) as lock:
            return not lock.acquire()

    def read(self) -> StackRecord | None:
        """The record, or None where there is none that can be read."""
        try:
            return StackRecord.from_json(self.record_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def write(self, record: StackRecord) -> None:
        """Replace the record, whole or not at all. Only the lock's holder may."""
        partial = self.record_file.with_suffix(".partial")
        try:
            partial.write_text(record.to_json(), encoding="utf-8")
            partial.replace(self.record_file)
        except OSError as error:
            raise StateFolderUnusable(
                f"{self.record_file} can't be written: {error.strerror}",
                remedy="Free some space there, or give the state folder to the user that runs the stack",
            ) from error

    def size(self, server: str) -> int:
        """Bytes on disk of the server's data."""
        total = 0
        for folder, _, names in os.walk(self.data(server)):
            for name in names:
                try:
                    total += (Path(folder) / name).lstat().st_blocks * 512
                except FileNotFoundError:  # A running server deletes files while we count.
                    continue
        return total

    def _own_files(self) -> tuple[Path, ...]:
        # The record goes late: as long as it is there, the folders are known to be a stack's.
        return (self.keeper_log, self.record_file.with_suffix(".partial"), self.record_file, self.lock_file)

    def wipe(self) -> list[Path]:
        """Remove what a stack made here, and the folder itself if nothing else is left in it; say what went. A link in
        place of one of the folders is removed, what it leads to is not.
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
    """An exclusive lock on a file, tied to this process: a child gets no share in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> bool:
        """Take the lock if nobody has it; say whether it is ours now."""
        # Not inherited: a server must not hold the lock after its keeper.
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Somebody may have wiped the folder since we opened the file: then we hold a file that nobody sees.
            if self._path.stat().st_ino == os.fstat(self._fd).st_ino:
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        self.release()
        return False

    def release(self) -> None:
        """Let go. May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
