"""Our own commands as child processes: started, watched until they answer, killed."""

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strandline.clock import Clock, wait_until
from strandline.errors import Fatal
from strandline.node.stack.tether import tethered

_LINES_TOLD = 15


class ProgramFailed(Fatal):
    """A command of ours did not do what the demonstration needs of it."""


class Program:
    """`strandline ...`, running, tied to this process. What it says goes to a file."""

    def __init__(self, arguments: list[str], log: Path, environ: Mapping[str, str]) -> None:
        script = Path(sys.executable).with_name("strandline")
        self._name, self._log = f"strandline {arguments[0]}", log
        with log.open("ab") as stream:
            self._process = subprocess.Popen(
                tethered([sys.executable, str(script), *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=dict(environ),
            )

    def wait_for_answer(self, address: str, path: str, clock: Clock, *, timeout: float) -> None:
        """Wait until a path is answered with 200. Raises `ProgramFailed`, with the end of its log."""

        def answers() -> bool:
            return self._process.poll() is not None or is_answered(address, path)

        if not wait_until(answers, timeout=timeout, clock=clock, poll=0.1):
            raise self._failed(f"did not answer {path} within {timeout:.0f} s")
        self.check()

    def check(self) -> None:
        """Raises `ProgramFailed` if it has ended."""
        if (code := self._process.poll()) is not None:
            raise self._failed(f"ended with {code}")

    def kill(self) -> None:
        """Kill -9, and what that takes with it."""
        self._process.kill()
        self._process.wait()

    def end(self, timeout: float = 60) -> None:
        """Ask it to end, and kill it if it does not."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()

    def _failed(self, how: str) -> ProgramFailed:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES_TOLD:]
        return ProgramFailed(f"{self._name} {how}", remedy="It said:\n" + "\n".join(lines))


def is_answered(address: str, path: str) -> bool:
    """Whether somebody answers this path with 200."""
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def fetched(address: str, path: str) -> Any:
    """The `data` of an answer in Prometheus' envelope. Raises `ProgramFailed`."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != http.client.OK:
            raise ProgramFailed(f"{path} was answered with {answer.status}: {said[:300].decode(errors='replace')}")
        return json.loads(said)["data"]
    except (OSError, http.client.HTTPException) as error:
        raise ProgramFailed(f"nobody answers {path} at {address}: {error}") from error
    finally:
        connection.close()
