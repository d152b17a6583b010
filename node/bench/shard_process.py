"""A real shard in a process of its own, as benchmarks and system tests run it: started, watched by its status file,
held still, and ended.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from strandline.clock import Clock, wait_until
from strandline.errors import Fatal
from strandline.node.stack.tether import tethered

Status = Mapping[str, Any]


class ShardEnded(Fatal):
    """The shard's process ended, or did not get where it should in time."""


class ShardProcess:
    """`strandline shard`, running. What it says goes to a file beside its status."""

    def __init__(self, shard: int, settings: Path, folder: Path, clock: Clock, extra: tuple[str, ...] = ()) -> None:
        self._status_file = folder / f"shard-{shard}.json"
        self._log = folder / f"shard-{shard}.log"
        self._clock = clock
        self._status_file.unlink(missing_ok=True)
        script = Path(sys.executable).with_name("strandline")
        command = tethered([sys.executable, str(script), "shard", str(shard), "--config", str(settings)])
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--status-file", str(self._status_file), *extra], stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def status(self) -> Status:
        """What it last said of itself; empty before it has said anything."""
        with suppress(FileNotFoundError):
            found: Status = json.loads(self._status_file.read_text(encoding="utf-8"))
            return found
        return {}

    def wait_for(self, what: str, condition: Callable[[Status], bool], timeout: float = 120) -> Status:
        """Its status as soon as a condition holds. Raises `ShardEnded`, with the end of its log, if that can't be."""
        found: Status = {}

        def holds() -> bool:
            nonlocal found
            found = self.status()
            return (bool(found) and condition(found)) or self._process.poll() is not None

        if not wait_until(holds, timeout=timeout, clock=self._clock, poll=0.05):
            raise self._ended(f"did not get so far in {timeout:.0f} s that {what}; it is {found.get('phase')}")
        # It may have said so, and ended, between the last look at its status and that at its process.
        for said in (found, self.status()):
            if said and condition(said):
                return said
        raise self._ended(f"ended with exit code {self._process.returncode} before {what}")

    @contextmanager
    def held_still(self) -> Iterator[None]:
        """Stop its clock, as it were: it does nothing inside, and goes on afterwards."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def wait(self, timeout: float = 30) -> int:
        """Wait for its end; its exit code."""
        return self._process.wait(timeout)

    def terminate(self) -> int:
        """Ask it to end, and wait for that; its exit code."""
        return self.interrupt(signal.SIGTERM)

    def interrupt(self, number: signal.Signals) -> int:
        """Send it a signal that ends it, and wait for that; its exit code."""
        self._process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def log_text(self) -> str:
        """All that it said."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _ended(self, how: str) -> ShardEnded:
        lines = self.log_text().splitlines()[-15:]
        return ShardEnded(f"the shard's process {self.pid} {how}", remedy="It said:\n" + os.linesep.join(lines))


def write_settings(path: Path, settings: Mapping[str, Mapping[str, object]]) -> Path:
    """A settings file with these sections."""
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
