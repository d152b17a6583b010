"""A command of ours in a process of its own, as demonstrations, benchmarks and system tests run it: started, tied to
the process that did so, watched, and ended.
"""

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
    """A command ended, or did not get where it should in time."""


class OwnCommand:
    """`strandline ...`, running. What it says goes to a file; what it prints to another, if one is given."""

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        *,
        printed: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """With the environment of this process, unless another is given."""
        script = Path(sys.executable).with_name("strandline")
        self._name, self._log = f"strandline {arguments[0]}", log
        with log.open("ab") as said, (printed or log).open("ab") as out:
            self._process = subprocess.Popen(
                tethered([sys.executable, str(script), *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=said,
                env=None if environ is None else dict(environ),
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self, timeout: float = 60) -> int:
        """Wait for its end; its exit code."""
        return self._process.wait(timeout)

    def terminate(self) -> int:
        """Ask it to end, and wait for that; its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Ask it to end, and kill it if it does not."""
        if self._process.poll() is None:
            try:
                self.terminate()
            except subprocess.TimeoutExpired:
                self.kill()

    def log_text(self) -> str:
        """What it logged."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def ended(self, how: str) -> CommandEnded:
        """An error that says how it ended, with the end of its log."""
        lines = self.log_text().splitlines()[-_SHOWN_LINES:]
        return CommandEnded(f"{self._name} (process {self.pid}) {how}", remedy="It said:\n" + os.linesep.join(lines))


class WatchedCommand(OwnCommand):
    """One that writes what it does into a status file."""

    def __init__(
        self,
        arguments: Sequence[str],
        status_file: Path,
        clock: Clock,
        *,
        printed: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Its log lies beside the status file."""
        self._status_file, self._clock = status_file, clock
        # Another one may have written it.
        status_file.unlink(missing_ok=True)
        command = [*arguments, "--status-file", str(status_file)]
        super().__init__(command, status_file.with_suffix(".log"), printed=printed, environ=environ)

    def status(self) -> Status:
        """What it last said of itself; empty before it has said anything."""
        with suppress(FileNotFoundError):
            found: Status = json.loads(self._status_file.read_text(encoding="utf-8"))
            return found
        return {}

    def wait_for(self, what: str, condition: Callable[[Status], bool], timeout: float = 120) -> Status:
        """Its status as soon as a condition holds. Raises `CommandEnded`, with the end of its log, if that can't be."""
        found: Status = {}

        def holds() -> bool:
            nonlocal found
            found = self.status()
            return (bool(found) and condition(found)) or self.exit_code is not None

        if not wait_until(holds, timeout=timeout, clock=self._clock, poll=0.05):
            at = f"; it is {found['phase']}" if "phase" in found else ""
            raise self.ended(f"did not get so far in {timeout:.0f} s that {what}{at}")
        # It may have said so, and ended, between the last look at its status and that at its process.
        for said in (found, self.status()):
            if said and condition(said):
                return said
        raise self.ended(f"ended with exit code {self.exit_code} before {what}")
