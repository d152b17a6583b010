"""The errors of the stack."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from strandline.errors import ExitCode, Fatal, Retryable


class WrongJava(Fatal):
    """Java was not found, or has the wrong version for the servers."""


class JarsMissing(Fatal):
    """A server's jars are not in the folder that the installation record names."""


class DiskTooFull(Fatal):
    """The state folder's disk has less free space than `stack.min_free_disk`."""


class StateFolderUnusable(Fatal):
    """The state folder can't be created or written, or has unexpected content."""


class PortInUse(Fatal):
    """A port from the settings can't be bound."""


class StackBusy(Retryable):
    """Another process has locked the state folder: a stack is running, starting or stopping there."""


class StartTimedOut(Retryable):
    """A server did not become healthy in the time allowed."""


class StartCancelled(Retryable):
    """The start was cancelled, or the process that requested the stack ended. All servers are stopped."""

    exit_code = ExitCode.INTERRUPTED


class StopTimedOut(Retryable):
    """The keeper did not end in the time allowed."""


class Unhealthy(Retryable):
    """A server failed a health check, or did not answer it in time."""


class ServerExited(Fatal):
    """A server's process ended by itself, while starting or later. It has the end of the server's log."""

    def __init__(self, message: str, *, remedy: str, server: str, cause: str, log: Path, lines: Sequence[str]) -> None:
        super().__init__(message, remedy=remedy)
        self.server = server
        self.cause = cause
        self.log = log
        self.lines = tuple(lines)

    def blocks(self) -> Iterable[str]:
        """The end of the log, as text below the message."""
        if self.lines:
            yield f"  The end of {self.log}:"
            yield from (f"    {line}" for line in self.lines)

    def details(self) -> Mapping[str, object]:
        """Further fields of the error's JSON."""
        return {"server": self.server, "cause": self.cause, "log": self.log, "log_lines": self.lines}


class KeeperFailed(Fatal):
    """The keeper's error, raised again in the process that started it."""

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        kind: str,
        exit_code: ExitCode = ExitCode.FAILED,
        lines: Sequence[str] = (),
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.kind = kind
        self.exit_code = exit_code
        self._lines = tuple(lines)
        self._details = {**(details or {}), "type": kind}

    def blocks(self) -> Iterable[str]:
        return self._lines

    def details(self) -> Mapping[str, object]:
        return self._details
