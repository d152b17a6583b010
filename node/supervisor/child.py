"""A shard's process as the supervisor sees it: started, asked to end, killed, and its last words."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from strandline.errors import Retryable
from strandline.node.stack.tether import tethered
from strandline.node.supervisor.process_time import cpu_seconds
from strandline.node.supervisor.voice import Voice

# What a child said on stdout: one document, or what a JVM says at its end.
_MOST_SAID = 64 << 10
_LONGEST_LINE = 500
# Levels of lines that are written while all is well.
_NO_REASON = ("debug", "info")
# Those of systemd are for the process that it started, and for no other.
_NOT_FOR_CHILDREN = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")


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


class ShardChild(Protocol):
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
        """The CPU time that it has used; None if nobody can tell."""
        ...

    def last_words(self) -> LastWords:
        """What it said at its end."""
        ...


class Launcher(Protocol):
    """Starts shards' processes."""

    def launch(self, shard: int, socket: Path, *, after_fencing: bool) -> ShardChild:
        """Start one that answers at this socket. After a fencing it takes the shard only if its owner is gone. Raises
        `LaunchFailed`.
        """
        ...


def shard_command(shard: int, socket: Path, config: Path | None, *, after_fencing: bool) -> list[str]:
    """The command line of a shard's process, by this interpreter. What ends it is told as JSON."""
    script = Path(sys.executable).with_name("strandline")
    given = ["--config", str(config.resolve())] if config is not None else []
    fenced = ["--after-fencing"] if after_fencing else []
    command = [sys.executable, str(script), "shard", str(shard), "--socket", str(socket)]
    return [*command, *fenced, *given, "--output", "json"]


class ProcessLauncher:
    """Starts `strandline shard`, tied to the calling thread: call it from one that lives as long as the shards should.

    `environment` is all of theirs; what systemd told this process is left out of it.
    """

    def __init__(self, config: Path | None, environment: Mapping[str, str], folder: Path) -> None:
        """`folder` is for files about each process."""
        self._config, self._folder = config, folder
        self._environment = {name: value for name, value in environment.items() if name not in _NOT_FOR_CHILDREN}

    def launch(self, shard: int, socket: Path, *, after_fencing: bool) -> "ProcessChild":
        command = shard_command(shard, socket, self._config, after_fencing=after_fencing)
        return ProcessChild(command, self._folder / f"shard-{shard}.out", self._environment)


class ProcessChild:
    """A real process. Its log passes through to our own stderr; stdout goes to a file, for its last words."""

    def __init__(self, command: Sequence[str], said: Path, environment: Mapping[str, str]) -> None:
        self._said = said
        try:
            with said.open("wb") as stdout:
                self._process = subprocess.Popen(
                    tethered(list(command)),
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    env=environment,
                    # In a session of its own: Ctrl-C at a terminal reaches the node, which stops its shards itself.
                    start_new_session=True,
                )
        except OSError as error:
            raise LaunchFailed(
                f"a process can't be started: {error.strerror}",
                remedy="See whether the machine has memory left, and how many processes may run",
            ) from error
        if self._process.stderr is None:
            raise RuntimeError("a pipe was asked for and is not there")
        self._voice = Voice(self._process.stderr)

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
            with self._said.open("rb") as file:
                said = file.read(_MOST_SAID)
        except OSError:
            said = b""
        return words_of(said, self._voice.last_line())


def words_of(said: bytes, last_line: str) -> LastWords:
    """The last words of a process, from its stdout and the last line of its log."""
    try:
        told = json.loads(said)["error"]
        return LastWords(str(told["message"]), str(told["remedy"]), told.get("retryable") is True)
    except (ValueError, KeyError, TypeError, AttributeError):
        return LastWords(_event_of(last_line)[:_LONGEST_LINE])


def _event_of(line: str) -> str:
    """What a line of a log says, be it JSON or text; nothing if it only tells how things go, and not why they end."""
    try:
        told = json.loads(line)
    except ValueError:
        return line
    if not isinstance(told, dict):
        return line
    return "" if told.get("level") in _NO_REASON else str(told.get("event", line))
