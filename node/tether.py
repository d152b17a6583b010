"""A launcher that tethers a program to its parent process: when the parent ends for any reason, the kernel kills the
program.

It runs as `python -I -S tether.py PARENT-PID PROGRAM ARGUMENT...` and becomes PROGRAM by exec, which keeps the process
id. It must not import other modules of Strandline: without site packages, it starts in some 20 ms.

The kernel watches the *thread* that forked, not the process: start tethered programs from a thread that lives as long
as they should, in practice from the main thread.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
CANNOT_TETHER = 126
"""The exit code if the program was not started: the parent has ended, or the kernel refused."""


def tethered(command: list[str], *, python: str = sys.executable) -> list[str]:
    """The command line that runs `command` tied to the calling process."""
    return [python, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), *command]


def main(arguments: list[str]) -> int:
    parent, *command = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        sys.stderr.write(f"tether: the kernel refused PR_SET_PDEATHSIG: {os.strerror(ctypes.get_errno())}\n")
        return CANNOT_TETHER
    # If the parent ended before the call above, there will be no signal, and this process has another parent by now.
    if os.getppid() != int(parent):
        sys.stderr.write(f"tether: the parent {parent} has ended\n")
        return CANNOT_TETHER
    try:
        os.execv(command[0], command)  # noqa: S606 - the launcher becomes the program
    except OSError as error:
        sys.stderr.write(f"tether: {command[0]} can't be run: {error.strerror}\n")
    return CANNOT_TETHER


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
