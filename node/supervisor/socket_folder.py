"""The folder of a node's sockets: private, one for each running node, and removed when the node ends. Each shard, the
front and the worker serve their reports at a socket of their own. The supervisor serves the front at another one.

A node holds a lock in its folder. A killed node leaves its folder behind; the next node removes it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import structlog

from strandline.clock import Clock
from strandline.disk import DiskFull, is_full
from strandline.errors import Fatal

_PREFIX = "strandline-node-"
_LOCK = "lock"
# The kernel's limit for the path of a socket is 108 bytes, including a terminating zero.
_MAX_PATH_BYTES = 107
_LONGEST_NAME = "shard-999999.sock"


_LOG = structlog.get_logger(__name__)
# The interval of attempts while a disk is full, and the number of attempts per warning: one warning a minute.
_DISK_FULL_RETRY_S, _ATTEMPTS_PER_WARNING = 5.0, 12


class SocketFolderUnusable(Fatal):
    """The folder for the shards' sockets can't be created."""


@contextmanager
def socket_folder(environ: Mapping[str, str], temporary: Path | None = None) -> Iterator[Path]:
    """A folder that only this user can access: in $RUNTIME_DIRECTORY, which systemd sets, or in the folder for
    temporary files. Raises `SocketFolderUnusable` or `DiskFull`.
    """
    given = environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
    base = Path(given) if given else temporary or Path(tempfile.gettempdir())
    try:
        folder = _fixed_folder(base / "shards") if given else _temporary_folder(base)
        lock = _locked(folder, os.O_CREAT)
        if lock is not None:
            _empty(folder)
    except OSError as error:
        if is_full(error):
            raise DiskFull(base) from error
        raise SocketFolderUnusable(
            f"the folder for the shards' sockets can't be created in {base}: {error.strerror}",
            remedy="Set TMPDIR to a writable folder; under systemd, check RuntimeDirectory= of the unit",
        ) from error
    if lock is None:
        raise SocketFolderUnusable(
            f"another node has its sockets in {folder}",
            remedy="Stop that node first, or set another RuntimeDirectory= for this one",
        )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def awaited_socket_folder(environ: Mapping[str, str], clock: Clock, temporary: Path | None = None) -> Iterator[Path]:
    """Like `socket_folder`, but waits while the disk is full, instead of letting the whole node fail."""
    with ExitStack() as opened:
        folder, attempts = None, 0
        while folder is None:
            try:
                folder = opened.enter_context(socket_folder(environ, temporary))
            except DiskFull as error:
                if attempts % _ATTEMPTS_PER_WARNING == 0:
                    _LOG.warning("the node waits for free disk space", error=str(error))
                attempts += 1
                clock.sleep(_DISK_FULL_RETRY_S)
        yield folder


def socket_path(folder: Path, shard: int) -> Path:
    """The path of a shard's socket."""
    return folder / f"shard-{shard}.sock"


def process_socket(folder: Path, name: str) -> Path:
    """The path of the socket of the front or the worker."""
    return folder / f"{name}.sock"


def control_socket(folder: Path) -> Path:
    """The path of the supervisor's control socket."""
    return folder / "node.sock"


def _fixed_folder(folder: Path) -> Path:
    _check_length(folder)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    return folder


def _temporary_folder(base: Path) -> Path:
    """Create a new folder, after removing those of nodes that have ended."""
    _check_length(base / f"{_PREFIX}12345678")
    for left in base.glob(f"{_PREFIX}*"):
        # Errors are expected: another user's folder can't be accessed, a folder may be removed meanwhile, and a new one
        # may not have its lock yet.
        with suppress(OSError):
            lock = _locked(left) if left.stat().st_uid == os.getuid() and not left.is_symlink() else None
            if lock is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))


def _empty(folder: Path) -> None:
    for left in folder.iterdir():
        if left.name != _LOCK:
            left.unlink()


def _locked(folder: Path, flags: int = 0) -> int | None:
    """Lock a folder; None if another process holds its lock."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _check_length(folder: Path) -> None:
    longest = os.fsencode(folder / _LONGEST_NAME)
    if len(longest) > _MAX_PATH_BYTES:
        raise SocketFolderUnusable(
            f"the path {folder} is too long for sockets: the limit with the socket's name is {_MAX_PATH_BYTES} bytes",
            remedy="Set TMPDIR (or RuntimeDirectory= under systemd) to a shorter path",
        )
