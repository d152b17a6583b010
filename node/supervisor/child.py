"""A child process of the supervisor: start it, terminate it, kill it, and read why it ended."""

import os
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from strandline.errors import Retryable
from strandline.node.exit_reason import MAX_STDOUT_BYTES, ExitReason, exit_reason
from strandline.node.supervisor.stderr_relay import StderrRelay
from strandline.node.tether import tethered

# Indices of fields in /proc/PID/stat, counted from after the command's closing parenthesis: the command may contain
# any character.
_USER_TICKS, _SYSTEM_TICKS = 11, 12


class LaunchFailed(Retryable):
    """The kernel refused to start another process."""


class Child(Protocol):
    """A process that runs or has ended."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""
        ...

    def cpu_seconds(self) -> float | None:
        """The CPU time that it has used; None if unknown."""
        ...

    def exit_reason(self) -> ExitReason:
        """Why it ended, according to its output."""
        ...


class ProcessChild:
    """A real process. The kernel kills it when the calling thread ends, so start it from a thread that lives as long as
    the process should. Its stderr, the log, is relayed to ours. Its stdout is a file in memory, so that it can print
    its error even when every disk is full.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, descriptors: Sequence[int] = ()
    ) -> None:
        """The process inherits `descriptors`, under the same numbers. Raises `LaunchFailed`."""
        try:
            self._stdout = os.memfd_create("strandline-stdout", os.MFD_CLOEXEC)
            weakref.finalize(self, os.close, self._stdout)
            self._process = subprocess.Popen(
                tethered(list(command)),
                stdin=subprocess.DEVNULL,
                stdout=self._stdout,
                stderr=subprocess.PIPE,
                env=environment,
                pass_fds=tuple(descriptors),
                # In its own session: Ctrl-C at a terminal reaches only the supervisor, which stops its children.
                start_new_session=True,
            )
        except OSError as error:
            raise LaunchFailed(
                f"a process can't be started: {error.strerror}",
                remedy="Check the machine's free memory and its limit of processes",
            ) from error
        if self._process.stderr is None:
            raise RuntimeError("the process was started without a pipe for stderr")
        self._stderr = StderrRelay(self._process.stderr)

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def cpu_seconds(self) -> float | None:
        return cpu_seconds(self._process.pid)

    def exit_reason(self) -> ExitReason:
        return exit_reason(os.pread(self._stdout, MAX_STDOUT_BYTES, 0), self._stderr.last_line())


def cpu_seconds(pid: int) -> float | None:
    """The CPU time of all threads of a process; None if the process does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    figures = text[text.rindex(")") + 2 :].split()
    return (int(figures[_USER_TICKS]) + int(figures[_SYSTEM_TICKS])) / os.sysconf("SC_CLK_TCK")
