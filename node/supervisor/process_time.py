"""The CPU time of another process, from /proc."""

import os
from pathlib import Path

# Indices of fields in /proc/PID/stat, counted from after the command's closing parenthesis: the command may contain
# any character.
_USER_TICKS, _SYSTEM_TICKS = 11, 12


def cpu_seconds(pid: int) -> float | None:
    """The CPU time of all threads of a process; None if the process does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    figures = text[text.rindex(")") + 2 :].split()
    return (int(figures[_USER_TICKS]) + int(figures[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")
