"""A launcher that ties a program's life to its parent's: when the parent ends, however it ends, the kernel kills the
program.

It runs as `python -I -S tether.py PARENT-PID PROGRAM ARGUMENT...` and becomes PROGRAM by exec, so the process id is
the program's own. Without site packages it starts in some 20 ms; therefore it imports nothing of ours.

The kernel watches the *thread* that forked, not the process: start tethered programs from a thread that lives as long
as they should, which in practice means the main thread.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
CANNOT_TETHER = 126
"""The exit code when the program was not started: the parent is gone, or the kernel refused."""


def tethered(command: list[str], *, python: str = sys.executable) -> list[str]:
    """The command line that runs `command` tied to the calling process."""
    return [python, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), *command]


def main(arguments: list[str]) -> int:
    parent, *command = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        sys.stderr.write(f"tether: the kernel refused the tie to the parent: {os.strerror(ctypes.get_errno())}\n")
        return CANNOT_TETHER
    # A parent that died before the call above sends no signal any more. By now we would have another parent.
    if os.getppid() != int(parent):
        sys.stderr.write(f"tether: the parent {parent} is gone\n")
        return CANNOT_TETHER
    try:
        os.execv(command[0], command)  # noqa: S606 - becoming the program is the point
    except OSError as error:
        sys.stderr.write(f"tether: {command[0]} can't be run: {error.strerror}\n")
    return CANNOT_TETHER


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
