"""How much memory a process takes, and those that it has started, as the kernel counts it."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_KIB = 1024


def peak_resident_bytes(pid: int) -> int:
    """The most that a process had resident since it became its program.

    `getrusage` does not say this of a program that a large process has started: before it became the program it shared
    that one's memory, and its peak counts as its own.
    """
    return _kibibytes(_PROC / str(pid) / "status", "VmHWM")


def resident_bytes(pid: int) -> int:
    """What a process has resident now."""
    return _kibibytes(_PROC / str(pid) / "status", "VmRSS")


def reset_peak(pid: int) -> None:
    """Let `peak_resident_bytes` begin anew with what a process has resident now. Raises `OSError`."""
    (_PROC / str(pid) / "clear_refs").write_text("5", encoding="ascii")


def tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    yield from _descendants(pid)


def descendants_bytes(pid: int) -> int:
    """What the processes below one take together now; what several share is counted once."""
    total = 0
    for child in _descendants(pid):
        # One that has just ended takes nothing.
        with suppress(OSError):
            total += _kibibytes(_PROC / str(child) / "smaps_rollup", "Pss")
    return total


def _descendants(pid: int) -> Iterator[int]:
    below: dict[int, list[int]] = {}
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            stat = (process / "stat").read_text(encoding="utf-8", errors="replace")
            below.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(process.name))
    waiting = list(below.get(pid, ()))
    while waiting:
        child = waiting.pop()
        yield child
        waiting += below.get(child, ())


def _kibibytes(path: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    # A process that has ended and was not waited for has no memory any more.
    return int(found[1]) * _KIB if found else 0
