"""The CPU time of descendants of this process, read from /proc."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the name: the parent, and the user and system time of the process and of the children
# that it has waited for.
_PARENT, _TIMES = 1, slice(11, 15)


def spark_cpu_seconds() -> float:
    """The CPU time of the JVM of this process' Spark session and its descendants: executors and their Python processes.
    0 without a session.
    """
    return sum(map(_tree_cpu_seconds, spark_drivers()))


def spark_drivers() -> list[int]:
    """The JVMs of Spark sessions of this process."""
    return [pid for pid in _children(os.getpid()) if b"SparkSubmit" in _command(pid)]


def _tree_cpu_seconds(pid: int) -> float:
    return _seconds(pid) + sum(_tree_cpu_seconds(child) for child in _children(pid))


def _children(parent: int) -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields and int(fields[_PARENT]) == parent:
            yield int(entry.name)


def _seconds(pid: int) -> float:
    return sum(map(int, _stat(pid)[_TIMES])) / _TICKS


def _stat(pid: int) -> list[str]:
    """Empty for a process that has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
