"""Reads the servers' logs: the last lines, the text since a position, and the likely cause of an early exit."""

import os
import re
import signal
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from strandline.clock import Clock

_MAX_READ_BYTES = 256 * 1024
_MAX_LINE_LENGTH = 300
_NOISE = re.compile(r"\s+(at \S|\.\.\. \d+ )|WARNING: ")
"""Stack frames, and the JVM's warnings about the server's code."""
ADDRESS_IN_USE = "an address it needs is in use"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a server ended, and the remedy."""

    what: str
    remedy: str


_KNOWN: tuple[tuple[re.Pattern[str], Cause], ...] = tuple(
    (re.compile(pattern), Cause(what, remedy))
    for pattern, what, remedy in (
        (
            r"No space left on device|Disk quota exceeded|Insufficient disk space",
            "its disk is full",
            "Free some space, or set stack.state_dir to a folder on another disk",
        ),
        (
            r"Address already in use|Failed to bind port \d+|is in use by another process",
            ADDRESS_IN_USE,
            "End the process that holds the port, or set the port to 0 for any free one",
        ),
        (
            r"OutOfMemoryError",
            "its heap is too small",
            "Raise stack.{server}_heap",
        ),
        (
            r"Could not reserve enough space|Invalid \w+ heap size|Too small \w+ heap|Cannot allocate memory",
            "its heap is too large for this machine",
            "Set stack.{server}_heap to a size that this machine has, such as 512m",
        ),
        (
            r"UnsupportedClassVersionError|Unrecognized (VM )?option|Cassandra \S+ requires",
            "it does not support this version of Java",
            "Set stack.java_home to a JDK 17",
        ),
        (
            r"Too many open files",
            "its limit of open files is too low",
            "Raise the limit with `ulimit -n 65536`",
        ),
        (
            r"Permission denied|AccessDeniedException|Read-only file system",
            "it has no permission to write its files",
            "Make the user that runs the stack the owner of the state folder",
        ),
        (
            r"ConfigurationException|ConfigException",
            "its configuration is invalid",
            "Check the extra configuration",
        ),
    )
)


def cause_of_exit(log: str, exit_code: int, server: str) -> Cause:
    """The likely cause of the exit of `server`, from its log since its start and its exit code."""
    for pattern, cause in _KNOWN:
        if pattern.search(log):
            return Cause(cause.what, cause.remedy.format(server=server))
    if exit_code == -signal.SIGKILL:
        return Cause("it was killed", "If no user killed it, the machine may have run out of memory: see `dmesg`")
    return Cause("its log shows no known cause", f"Read it with `strandline stack logs {server}`")


def written_since(path: Path, position: int) -> str:
    """The text after `position`, which was the file's size at an earlier time, or all of the text if the file has been
    rotated since. At most the last `_MAX_READ_BYTES`.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = position if position <= size else 0
            file.seek(max(start, size - _MAX_READ_BYTES))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def informative_lines(text: str, count: int) -> list[str]:
    """The last lines of a log, without stack frames and JVM warnings, and with long lines shortened."""
    lines = (line.rstrip() for line in text.splitlines())
    chosen = (line for line in lines if line and not _NOISE.match(line))
    return [line if len(line) <= _MAX_LINE_LENGTH else f"{line[:_MAX_LINE_LENGTH]}..." for line in deque(chosen, count)]


def size_of(path: Path) -> int:
    """The file's size; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def last_lines(path: Path, count: int) -> list[str]:
    """The file's last lines; none if it does not exist."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, maxlen=count)]
    except FileNotFoundError:
        return []


def follow(
    path: Path, count: int, *, clock: Clock, stop: Callable[[], bool] = lambda: False, poll: float = 0.2
) -> Iterator[str]:
    """The file's last lines, then those that are appended to it, across rotations, until `stop` returns True. A line is
    returned when it is complete.
    """
    file = _open(path)
    rest = b""
    try:
        if file is not None:
            *old, rest = file.read().split(b"\n")
            yield from (line.decode("utf-8", errors="replace") for line in old[len(old) - min(count, len(old)) :])
        while True:
            stopping = stop()
            # Checked before the read, so that all of the old file is read before it is closed.
            rotated = file is None or _inode(path) != os.fstat(file.fileno()).st_ino
            if file is not None:
                *lines, rest = (rest + file.read()).split(b"\n")
                yield from (line.decode("utf-8", errors="replace") for line in lines)
            if stopping:
                return
            if rotated and path.exists():
                if file is not None:
                    file.close()
                file, rest = _open(path), b""
            else:
                clock.sleep(poll)
    finally:
        if file is not None:
            file.close()


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
