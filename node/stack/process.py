"""Facts about processes, read from /proc.

A process id alone is no identity: ids are used again. With the moment the process started it is one, as long as the
machine runs.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_STAT_STATE = 0
_STAT_START_TICKS = 19
"""Positions in /proc/PID/stat, counted behind the command's closing bracket (the command may hold any character)."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process and no other, also after its id has been given away again."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The identity of the process that has this id now, or None where there is none (a zombie counts as none)."""
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
    """Memory that the process holds in RAM, or None if it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def command_name(pid: int) -> str | None:
    """The short name of the process' program, or None if it is gone."""
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
