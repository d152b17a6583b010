"""The CPU time of another process, as the kernel counts it."""

import os
from pathlib import Path

# Positions in /proc/PID/stat, counted behind the command's closing bracket (the command may hold any character).
_USER_TICKS, _SYSTEM_TICKS = 11, 12


def cpu_seconds(pid: int) -> float | None:
    """Of all its threads; None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    figures = text[text.rindex(")") + 2 :].split()
    return (int(figures[_USER_TICKS]) + int(figures[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")
