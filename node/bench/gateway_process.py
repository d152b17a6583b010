"""A real gateway in a process of its own, as benchmarks and system tests run it: started, watched by its status file,
and ended.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from strandline.clock import Clock, wait_until
from strandline.errors import Fatal
from strandline.node.stack.tether import tethered

Status = Mapping[str, Any]


class GatewayEnded(Fatal):
    """The gateway's process ended, or did not get where it should in time."""


class GatewayProcess:
    """`strandline gateway`, running. What it says goes to files beside its status."""

    def __init__(
        self,
        settings: Path,
        folder: Path,
        clock: Clock,
        *,
        extra: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._status_file, self._log, self._said = (folder / f"gateway.{kind}" for kind in ("json", "log", "out"))
        self._clock = clock
        self._status_file.unlink(missing_ok=True)
        script = Path(sys.executable).with_name("strandline")
        command = tethered([sys.executable, str(script), "gateway", "--config", str(settings)])
        with self._log.open("ab") as log, self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [*command, "--status-file", str(self._status_file), *extra],
                stdout=said,
                stderr=log,
                env=None if environ is None else {**os.environ, **environ},
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def status(self) -> Status:
        """What it last said of itself; empty before it listens."""
        with suppress(FileNotFoundError):
            found: Status = json.loads(self._status_file.read_text(encoding="utf-8"))
            return found
        return {}

    def wait_for(self, what: str, condition: Callable[[Status], bool], timeout: float = 60) -> Status:
        """Its status as soon as a condition holds. Raises `GatewayEnded`, with the end of its log, if that can't be."""
        found: Status = {}

        def holds() -> bool:
            nonlocal found
            found = self.status()
            return (bool(found) and condition(found)) or self._process.poll() is not None

        if not wait_until(holds, timeout=timeout, clock=self._clock, poll=0.02):
            raise self._ended(f"did not get so far in {timeout:.0f} s that {what}")
        for said in (found, self.status()):
            if said and condition(said):
                return said
        raise self._ended(f"ended with exit code {self._process.returncode} before {what}")

    def listening(self) -> str:
        """The URL at which it answers, once it does."""
        return str(self.wait_for("it listens", lambda one: bool(one["url"]))["url"])

    def wait(self, timeout: float = 60) -> int:
        """Wait for its end; its exit code."""
        return self._process.wait(timeout)

    def interrupt(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def terminate(self) -> int:
        """Ask it to end, and wait for that; its exit code."""
        self.interrupt()
        return self.wait()

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def log_text(self) -> str:
        """What it logged."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def said(self) -> str:
        """What it printed."""
        return self._said.read_text(encoding="utf-8", errors="replace")

    def _ended(self, how: str) -> GatewayEnded:
        lines = self.log_text().splitlines()[-15:]
        return GatewayEnded(f"the gateway's process {self.pid} {how}", remedy="It said:\n" + os.linesep.join(lines))
