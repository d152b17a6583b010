"""The folder of a node's sockets: private, one for each running node, and removed with it. Each shard, the front and
the worker report at one of them, and the supervisor itself answers the front at another.

A node that was killed leaves its folder behind; the next one removes it. Who lives holds a lock in its own.
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
# The kernel's limit for the path of a socket is 108 bytes with a zero at the end.
_MAX_PATH_BYTES = 107
_LONGEST_NAME = "shard-999999.sock"


_LOG = structlog.get_logger(__name__)
# How often a full disk is looked at again, and at how many of these looks it is logged: once a minute.
_ROOM_S, _TRIES_A_WARNING = 5.0, 12


class SocketFolderUnusable(Fatal):
    """There is no place for the shards' sockets."""


@contextmanager
def socket_folder(environ: Mapping[str, str], temporary: Path | None = None) -> Iterator[Path]:
    """A folder that only this user may enter: below $RUNTIME_DIRECTORY, which systemd sets, or the folder for
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
            f"no folder for the shards' sockets can be made in {base}: {error.strerror}",
            remedy="Set TMPDIR to a folder that may be written to; under systemd see RuntimeDirectory= of the unit",
        ) from error
    if lock is None:
        raise SocketFolderUnusable(
            f"another node has its sockets in {folder}",
            remedy="Stop that one first, or give this one a RuntimeDirectory= of its own",
        )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def awaited_socket_folder(environ: Mapping[str, str], clock: Clock, temporary: Path | None = None) -> Iterator[Path]:
    """The same, and while the disk is full wait for room: the node as a whole must not fail for that."""
    with ExitStack() as opened:
        folder, tries = None, 0
        while folder is None:
            try:
                folder = opened.enter_context(socket_folder(environ, temporary))
            except DiskFull as error:
                if tries % _TRIES_A_WARNING == 0:
                    _LOG.warning("the node waits for room on a disk", error=str(error))
                tries += 1
                clock.sleep(_ROOM_S)
        yield folder


def socket_path(folder: Path, shard: int) -> Path:
    """Where a shard listens."""
    return folder / f"shard-{shard}.sock"


def process_socket(folder: Path, name: str) -> Path:
    """Where the front or the worker reports."""
    return folder / f"{name}.sock"


def control_socket(folder: Path) -> Path:
    """Where the supervisor answers the front."""
    return folder / "node.sock"


def _fixed_folder(folder: Path) -> Path:
    _check_length(folder)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    return folder


def _temporary_folder(base: Path) -> Path:
    """A new folder; those of nodes that are gone are removed on the way."""
    _check_length(base / f"{_PREFIX}12345678")
    for left in base.glob(f"{_PREFIX}*"):
        # Others' folders can't be entered, one that is being removed may be gone by now, and one that is just being
        # made has no lock in it yet.
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


def _locked(folder: Path, making: int = 0) -> int | None:
    """The lock of a folder; None if somebody else holds it."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | making, 0o600)
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
            f"{folder} is too long a path for sockets, which may have {_MAX_PATH_BYTES} bytes",
            remedy="Set TMPDIR (or RuntimeDirectory= under systemd) to a shorter one",
        )
