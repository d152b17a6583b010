"""A child process as the supervisor sees it: started, asked to end, killed, and the reason that it gave for its end."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from strandline.errors import Retryable
from strandline.node.supervisor.process_time import cpu_seconds
from strandline.node.supervisor.stderr_relay import StderrRelay
from strandline.node.tether import tethered

# What a child printed on stdout: one document, or what a JVM prints at its end.
_MOST_PRINTED = 64 << 10
_LONGEST_LINE = 500
# Levels of log lines that don't explain an end.
_NO_REASON = ("debug", "info")


class LaunchFailed(Retryable):
    """The kernel would not start another process."""


@dataclass(frozen=True, slots=True)
class LastWords:
    """Why a process ended, as it said itself: in a line, with a remedy if it knew one. `passing` says that the same may
    work later with nothing changed.
    """

    message: str = ""
    remedy: str = ""
    passing: bool = False

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


class Child(Protocol):
    """A process that runs, or has ended."""

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        ...

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """End it."""
        ...

    def cpu_seconds(self) -> float | None:
        """The CPU time that it has used; None if that is not known."""
        ...

    def last_words(self) -> LastWords:
        """What it said at its end."""
        ...


class ProcessChild:
    """A real process, tied to the calling thread: start it from one that lives as long as the process should. Its log
    passes through to our own stderr; stdout goes to a file, for its last words.
    """

    def __init__(
        self, command: Sequence[str], printed: Path, environment: Mapping[str, str], *, descriptors: Sequence[int] = ()
    ) -> None:
        """`descriptors` are files of ours that it may use, under the same numbers. Raises `LaunchFailed`."""
        self._printed = printed
        try:
            with printed.open("wb") as stdout:
                self._process = subprocess.Popen(
                    tethered(list(command)),
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    env=environment,
                    pass_fds=tuple(descriptors),
                    # In a session of its own: Ctrl-C at a terminal reaches the node, which stops its children itself.
                    start_new_session=True,
                )
        except OSError as error:
            raise LaunchFailed(
                f"a process can't be started: {error.strerror}",
                remedy="See whether the machine has memory left, and how many processes may run",
            ) from error
        if self._process.stderr is None:
            raise RuntimeError("a pipe was asked for and is not there")
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

    def last_words(self) -> LastWords:
        try:
            with self._printed.open("rb") as file:
                printed = file.read(_MOST_PRINTED)
        except OSError:
            printed = b""
        return words_of(printed, self._stderr.last_line())


def words_of(printed: bytes, last_line: str) -> LastWords:
    """The last words of a process, from its stdout and the last line of its log."""
    try:
        error = json.loads(printed)["error"]
        return LastWords(_text(error["message"]), _text(error["remedy"]), error.get("retryable") is True)
    except (ValueError, KeyError, TypeError, AttributeError):
        return LastWords(_text(_event_of(last_line)[:_LONGEST_LINE]))


def _text(value: object) -> str:
    """As valid Unicode: a message may quote a path, which need not be text."""
    return str(value).encode(errors="replace").decode()


def _event_of(line: str) -> str:
    """What a line of a log says, be it JSON or text; nothing if its level is one that does not explain an end."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict):
        return line
    return "" if record.get("level") in _NO_REASON else str(record.get("event", line))
