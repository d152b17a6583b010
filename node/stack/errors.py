"""What can go wrong with the stack, each as an error that names the thing and the way out."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from strandline.errors import ExitCode, Fatal, Retryable


class WrongJava(Fatal):
    """There is no Java, or not the one that the servers run on."""


class JarsMissing(Fatal):
    """A server's jars are not where the installation says."""


class DiskTooFull(Fatal):
    """The state folder's disk has less free space than asked for."""


class StateFolderUnusable(Fatal):
    """The state folder can't be made, written or understood."""


class PortInUse(Fatal):
    """A port that the settings fix can't be bound."""


class StackBusy(Retryable):
    """Another process holds the state folder: the stack runs there, or is on its way up or down."""


class StartTimedOut(Retryable):
    """A server did not become healthy in the time allowed."""


class StartCancelled(Retryable):
    """Whoever asked for the stack went away or changed their mind; all servers are stopped."""

    exit_code = ExitCode.INTERRUPTED


class StopTimedOut(Retryable):
    """The keeper did not end in the time allowed."""


class Unhealthy(Retryable):
    """A server answered a health check wrongly, late or not at all."""


class ServerExited(Fatal):
    """A server's process ended by itself: while starting, or later. Carries the end of its log."""

    def __init__(self, message: str, *, remedy: str, server: str, cause: str, log: Path, lines: Sequence[str]) -> None:
        super().__init__(message, remedy=remedy)
        self.server = server
        self.cause = cause
        self.log = log
        self.lines = tuple(lines)

    def blocks(self) -> Iterable[str]:
        """What people read below the message."""
        if self.lines:
            yield f"  The end of {self.log}:"
            yield from (f"    {line}" for line in self.lines)

    def details(self) -> Mapping[str, object]:
        """What programs read beside the message."""
        return {"server": self.server, "cause": self.cause, "log": self.log, "log_lines": self.lines}


class KeeperFailed(Fatal):
    """The keeper's own error, told again by whoever started it."""

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
