"""Runs a `strandline` command as a tethered child process, for the demo, benchmarks and system tests."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from strandline.clock import Clock, wait_until
from strandline.errors import Fatal
from strandline.node.tether import tethered

Status = Mapping[str, Any]
_SHOWN_LINES = 15


class CommandEnded(Fatal):
    """A command has ended unexpectedly, or has not reached a state in time."""


class OwnCommand:
    """A running `strandline` command. Its stderr goes to `log`, and its stdout to `printed` or else to `log`."""

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        printed: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`environ` defaults to the environment of this process."""
        script = Path(sys.executable).with_name("strandline")
        self._name, self._log = f"strandline {arguments[0]}", log
        with log.open("ab") as err, (printed or log).open("ab") as out:
            self._process = subprocess.Popen(
                tethered([sys.executable, str(script), *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=None if environ is None else dict(environ),
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self, timeout: float = 60) -> int:
        """Wait for the end, and return the exit code."""
        return self._process.wait(timeout)

    def terminate(self) -> int:
        """Send SIGTERM, wait for the end, and return the exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Send SIGKILL if it still runs, and wait for the end."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Terminate it, and kill it after a timeout."""
        if self._process.poll() is None:
            try:
                self.terminate()
            except subprocess.TimeoutExpired:
                self.kill()

    def log_text(self) -> str:
        """The content of the log."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def ended(self, how: str) -> CommandEnded:
        """An error with `how` the command ended and the end of its log."""
        lines = self.log_text().splitlines()[-_SHOWN_LINES:]
        return CommandEnded(
            f"{self._name} (process {self.pid}) {how}", remedy="The end of its log:\n" + os.linesep.join(lines)
        )


class WatchedCommand(OwnCommand):
    """A command with a status file."""

    def __init__(
        self,
        arguments: Sequence[str],
        status_file: Path,
        clock: Clock,
        *,
        printed: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """The log is next to the status file."""
        self._status_file, self._clock = status_file, clock
        # An earlier command may have left it.
        status_file.unlink(missing_ok=True)
        command = [*arguments, "--status-file", str(status_file)]
        super().__init__(command, status_file.with_suffix(".log"), printed=printed, environ=environ)

    def status(self) -> Status:
        """The last status; empty before the first one."""
        with suppress(FileNotFoundError):
            found: Status = json.loads(self._status_file.read_text(encoding="utf-8"))
            return found
        return {}

    def wait_for(self, what: str, condition: Callable[[Status], bool], timeout: float = 120) -> Status:
        """Wait for a condition on the status, and return the status. Raises `CommandEnded` on a timeout or exit."""
        found: Status = {}

        def holds() -> bool:
            nonlocal found
            found = self.status()
            return (bool(found) and condition(found)) or self.exit_code is not None

        if not wait_until(holds, timeout=timeout, clock=self._clock, poll=0.05):
            at = f"; it is {found['phase']}" if "phase" in found else ""
            raise self.ended(f'has not reached the condition "{what}" within {timeout:.0f} s{at}')
        # The command may have written the status and ended after the last check.
        for status in (found, self.status()):
            if status and condition(status):
                return status
        raise self.ended(f"ended with exit code {self.exit_code} before {what}")
