"""Facts about processes, read from /proc.

The kernel reuses process ids. Together with the start time, an id identifies a process until the machine reboots.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_STAT_STATE = 0
_STAT_START_TICKS = 19
"""Positions in /proc/PID/stat after the command's closing bracket. The command may contain any character."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identifies a process, even if its id is reused later."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The identity of the process that currently has this id; None if there is none, or if it is a zombie."""
        stat = _stat(pid)
        if stat is None or stat[_STAT_STATE] == "Z":
            return None
        return cls(pid=pid, start_ticks=int(stat[_STAT_START_TICKS]))

    @classmethod
    def own(cls) -> Self:
        """The calling process."""
        identity = cls.of(os.getpid())
        if identity is None:
            raise RuntimeError("/proc does not show the calling process; is it mounted?")
        return identity

    def alive(self) -> bool:
        return ProcessIdentity.of(self.pid) == self


def resident_bytes(pid: int) -> int | None:
    """The resident memory of the process; None if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def command_name(pid: int) -> str | None:
    """The short name of the process' program; None if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()
