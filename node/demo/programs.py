"""Runs `strandline` commands as child processes, and waits until they answer over HTTP."""

import http.client
import json
from typing import Any

from strandline.clock import Clock, wait_until
from strandline.errors import Fatal
from strandline.node.own_command import OwnCommand


class ProgramFailed(Fatal):
    """A program of the demo failed, did not answer, or gave an unexpected answer."""


class Program(OwnCommand):
    """A `strandline` command that answers over HTTP."""

    def wait_for_answer(self, address: str, path: str, clock: Clock, *, timeout: float) -> None:
        """Wait until a path is answered with 200. Raises `CommandEnded`, with the end of the log."""

        def answers() -> bool:
            return self.exit_code is not None or is_answered(address, path)

        if not wait_until(answers, timeout=timeout, clock=clock, poll=0.1):
            raise self.ended(f"did not answer {path} within {timeout:.0f} s")
        self.check()

    def check(self) -> None:
        """Raises `CommandEnded` if the command has ended."""
        if (code := self.exit_code) is not None:
            raise self.ended(f"ended with exit code {code}")


def is_answered(address: str, path: str) -> bool:
    """Whether this path is answered with 200."""
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def fetch_data(address: str, path: str) -> Any:
    """The `data` of an answer in Prometheus' format. Raises `ProgramFailed`."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise ProgramFailed(f"{path} was answered with {answer.status}: {body[:300].decode(errors='replace')}")
        return json.loads(body)["data"]
    except (OSError, http.client.HTTPException) as error:
        raise ProgramFailed(f"{address} does not answer {path}: {error}") from error
    finally:
        connection.close()
