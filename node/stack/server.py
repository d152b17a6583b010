"""One server of the stack: a child process with its configuration files, its phase, and the cause of its exit."""

import os
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from strandline.clock import Clock
from strandline.node.stack.errors import ServerExited, StateFolderUnusable, Unhealthy
from strandline.node.stack.logs import cause_of_exit, informative_lines, size_of, written_since
from strandline.node.stack.ports import is_listening
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.record import ServerRecord
from strandline.node.stack.state import StateFolder
from strandline.node.tether import tethered

_LOG_LINES_IN_ERRORS = 12


class Phase(StrEnum):
    """The phases of a server, in their order. A stop is possible in any of them."""

    PREPARING = "preparing"
    STARTING = "starting"
    CHECKING = "checking"
    HEALTHY = "healthy"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Server(ABC):
    """A server as a child process.

    `start` returns immediately. Afterwards, call `advance` until it returns HEALTHY. All calls must come from one
    thread, which must live as long as the server (see `tether`). Only `check` and `finish_stop` block, each for at most
    its timeout.
    """

    name: ClassVar[str]
    """The name in paths and on the command line."""
    title: ClassVar[str]
    """The name in texts."""

    def __init__(self, folder: StateFolder, port: int, clock: Clock) -> None:
        self.folder = folder
        self.port = port
        self.log = folder.log(name=self.name)
        self.phase = Phase.STOPPED
        self.last_failure = ""
        """Why the last health check failed; empty when one has passed."""
        self._output = folder.output(self.name)
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._log_position = 0

    @property
    @abstractmethod
    def version(self) -> str:
        """The server's version."""

    @abstractmethod
    def files(self) -> Mapping[Path, str]:
        """The configuration files, which are written at each start."""

    @abstractmethod
    def preparation(self) -> list[str] | None:
        """A command that must succeed before the server starts; None if there is nothing to prepare."""

    @abstractmethod
    def finish_preparation(self) -> None:
        """Called when the preparation has succeeded."""

    @abstractmethod
    def command(self) -> list[str]:
        """The server's command line."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """All environment variables of the server."""

    @abstractmethod
    def check(self, timeout: float) -> None:
        """Use the server as a client. Raises `Unhealthy` if it does not answer correctly within `timeout` seconds."""

    def start(self) -> None:
        """Write the files and start the process, or its preparation."""
        try:
            self._write_files()
        except OSError as error:
            raise StateFolderUnusable(
                f"{error.filename or self.folder.root} can't be written: {error.strerror}",
                remedy="Free some space there, or make the user that runs the stack the owner of the state folder",
            ) from error
        self._started = self._clock.monotonic()
        self._log_position = size_of(self.log)
        preparation = self.preparation()
        self._spawn(preparation or self.command(), Phase.PREPARING if preparation else Phase.STARTING)

    def advance(self, check_timeout: float) -> Phase:
        """Do the next step if it is due, and return the phase. Raises `ServerExited` if the server has ended."""
        if self.phase is Phase.PREPARING:
            if self._running().poll() == 0:
                self.finish_preparation()
                self._spawn(self.command(), Phase.STARTING)
            else:
                self.require_alive()
        elif self.phase in (Phase.STARTING, Phase.CHECKING):
            self.require_alive()
            if self.phase is Phase.CHECKING:
                self._try_check(check_timeout)
            elif is_listening(self.port, self._running().pid):
                self.phase = Phase.CHECKING
        return self.phase

    def require_alive(self) -> None:
        """Raise `ServerExited`, with the end of its log, if the process has ended."""
        code = self._running().poll()
        if code is None:
            return
        elapsed = self._clock.monotonic() - self._started
        log = written_since(self.log, self._log_position)
        output = written_since(self._output, 0)
        cause = cause_of_exit(log + output, code, self.name)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise ServerExited(
            f"{self.title} {how} after {elapsed:.1f} s ({self.phase}): {cause.what}",
            remedy=cause.remedy,
            server=self.name,
            cause=cause.what,
            log=self.log if log else self._output,
            lines=informative_lines(log + output, _LOG_LINES_IN_ERRORS),
        )

    def begin_stop(self) -> None:
        """Send SIGTERM to the process."""
        if self._process is not None and self._process.poll() is None:
            self.phase = Phase.STOPPING
            self._process.terminate()

    def finish_stop(self, timeout: float) -> None:
        """Wait until the process has ended. Kills it after `timeout` seconds."""
        if self._process is not None:
            try:
                self._process.wait(max(0.0, timeout))
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.phase = Phase.STOPPED

    @contextmanager
    def exit_event(self) -> Iterator[int]:
        """A descriptor that becomes readable when the process ends."""
        descriptor = os.pidfd_open(self._running().pid)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def describe(self) -> ServerRecord:
        """The server's entry in the stack's record."""
        process = ProcessIdentity.of(self._process.pid) if self._process is not None else None
        return ServerRecord(name=self.name, process=process, version=self.version, log=str(self.log))

    def _write_files(self) -> None:
        temporary = self.folder.temporary(self.name)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for path, text in self.files().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self._output.parent.mkdir(parents=True, exist_ok=True)
        self._output.write_bytes(b"")

    def _try_check(self, timeout: float) -> None:
        try:
            self.check(timeout)
        except Unhealthy as error:
            self.last_failure = error.message
        else:
            self.last_failure = ""
            self.phase = Phase.HEALTHY

    def _spawn(self, command: list[str], phase: Phase) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                tethered(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder.root,
                env=self.environment(),
                # In its own session, so that Ctrl-C reaches only the parent, which then stops its servers.
                start_new_session=True,
            )
        self.phase = phase

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process
