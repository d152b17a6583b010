"""Sends remote-write requests with retries, as an agent does, until each is acknowledged."""

import http.client
from collections.abc import Iterable

from strandline.clock import Clock
from strandline.node.demo.ledger import Ledger
from strandline.node.demo.programs import ProgramFailed
from strandline.node.steps import Step

_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
    "User-Agent": "strandline-demo",
}
_RETRYABLE = (http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE)
_MAX_TRIES, _PAUSE_S = 50, 0.2


class Sender:
    """Sends requests to a gateway over one connection, and adds acknowledged ones to a ledger."""

    def __init__(self, address: str, ledger: Ledger, clock: Clock) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=60)
        self._ledger, self._clock = ledger, clock
        self.samples = 0

    def send(self, bodies: Iterable[bytes], step: Step) -> None:
        """Send each request until it is acknowledged. Raises `ProgramFailed` after too many tries or a 4xx."""
        for body in bodies:
            for _ in range(_MAX_TRIES):
                status, text = self._post(body)
                if status < http.client.MULTIPLE_CHOICES:
                    break
                if status not in _RETRYABLE:
                    raise ProgramFailed(f"the gateway answered {status}: {text}")
                self._clock.sleep(_PAUSE_S)
            else:
                raise ProgramFailed(f"the gateway did not accept a request in {_MAX_TRIES} tries: {text}")
            self.samples += self._ledger.add(body)
            step.note = f"{self.samples:,} samples acknowledged"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _post(self, body: bytes) -> tuple[int, str]:
        self._connection.request("POST", "/api/v1/write", body, _HEADERS)
        answer = self._connection.getresponse()
        return answer.status, answer.read()[:300].decode(errors="replace")
