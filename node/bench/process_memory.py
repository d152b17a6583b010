"""The memory of a process and its descendants, read from /proc."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_KIB = 1024


def peak_resident_bytes(pid: int) -> int:
    """The peak resident memory of a process since its `exec`.

    `getrusage` is not usable for this: between `fork` and `exec`, a child shares the memory of its parent, whose size
    would count as the child's peak.
    """
    return _kibibytes(_PROC / str(pid) / "status", "VmHWM")


def resident_bytes(pid: int) -> int:
    """The current resident memory of a process."""
    return _kibibytes(_PROC / str(pid) / "status", "VmRSS")


def reset_peak(pid: int) -> None:
    """Reset the peak of a process to its current resident memory. Raises `OSError`."""
    (_PROC / str(pid) / "clear_refs").write_text("5", encoding="ascii")


def tree(pid: int) -> Iterator[int]:
    """A process and all of its descendants."""
    yield pid
    yield from _descendants(pid)


def descendants_bytes(pid: int) -> int:
    """The current memory of a process' descendants in total. Shared memory is counted once."""
    total = 0
    for child in _descendants(pid):
        # The process may have ended.
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
    # A zombie has no memory.
    return int(found[1]) * _KIB if found else 0
