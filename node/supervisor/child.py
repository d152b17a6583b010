"""A child process as the supervisor sees it: started, asked to end, killed, and the reason that it gave for its end."""

import json
import os
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from strandline.errors import Retryable
from strandline.node.supervisor.process_time import cpu_seconds
from strandline.node.supervisor.stderr_relay import StderrRelay
from strandline.node.tether import tethered

# What a child printed on stdout: one document, or what a JVM prints at its end.
MOST_PRINTED = 64 << 10
_LONGEST_LINE = 500
# Levels of log lines that don't explain an end.
_NO_REASON = ("debug", "info")


class LaunchFailed(Retryable):
    """The kernel would not start another process."""


@dataclass(frozen=True, slots=True)
class LastWords:
    """Why a process ended, as it said itself: in a line, with a remedy if it knew one. `passing` says that the same may
    work later with nothing changed, and `full_disk` has the path whose disk needs room for that.
    """

    message: str = ""
    remedy: str = ""
    passing: bool = False
    full_disk: str = ""

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
    passes through to our own stderr; stdout goes to a file in memory, for its last words, which can so be written when
    every disk is full.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, descriptors: Sequence[int] = ()
    ) -> None:
        """`descriptors` are files of ours that it may use, under the same numbers. Raises `LaunchFailed`."""
        try:
            self._printed = os.memfd_create("strandline-stdout", os.MFD_CLOEXEC)
            weakref.finalize(self, os.close, self._printed)
            self._process = subprocess.Popen(
                tethered(list(command)),
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
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
        return words_of(os.pread(self._printed, MOST_PRINTED, 0), self._stderr.last_line())


def words_of(printed: bytes, last_line: str) -> LastWords:
    """The last words of a process, from its stdout and the last line of its log."""
    try:
        error = json.loads(printed)["error"]
        full_disk = _text(error.get("full_disk", ""))
        return LastWords(_text(error["message"]), _text(error["remedy"]), error.get("retryable") is True, full_disk)
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
