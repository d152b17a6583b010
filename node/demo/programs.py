"""Our own commands as child processes, watched until they answer."""

import http.client
import json
from typing import Any

from strandline.clock import Clock, wait_until
from strandline.errors import Fatal
from strandline.node.own_command import OwnCommand


class ProgramFailed(Fatal):
    """What a demonstration needs was not there, or not what it should be."""


class Program(OwnCommand):
    """A command of ours that answers over HTTP."""

    def wait_for_answer(self, address: str, path: str, clock: Clock, *, timeout: float) -> None:
        """Wait until a path is answered with 200. Raises `CommandEnded`, with the end of its log."""

        def answers() -> bool:
            return self.exit_code is not None or is_answered(address, path)

        if not wait_until(answers, timeout=timeout, clock=clock, poll=0.1):
            raise self.ended(f"did not answer {path} within {timeout:.0f} s")
        self.check()

    def check(self) -> None:
        """Raises `CommandEnded` if it has ended."""
        if (code := self.exit_code) is not None:
            raise self.ended(f"ended with {code}")


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
