"""Load: scrapes of many series, sent as an agent sends them, until each request is acknowledged."""

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
_LATER = (http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE)
_MOST_TRIES, _PAUSE_S = 50, 0.2


class Sender:
    """Sends to a gateway over one connection, and enters what it acknowledges into a ledger."""

    def __init__(self, address: str, ledger: Ledger, clock: Clock) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=60)
        self._ledger, self._clock = ledger, clock
        self.samples = 0

    def send(self, bodies: Iterable[bytes], step: Step) -> None:
        """Send each until it is acknowledged, as the protocol asks. Raises `ProgramFailed` for one that never is."""
        for body in bodies:
            for _ in range(_MOST_TRIES):
                status, said = self._post(body)
                if status < http.client.MULTIPLE_CHOICES:
                    break
                if status not in _LATER:
                    raise ProgramFailed(f"the gateway answered {status}: {said}")
                self._clock.sleep(_PAUSE_S)
            else:
                raise ProgramFailed(f"the gateway did not take a request in {_MOST_TRIES} tries: {said}")
            self.samples += self._ledger.acknowledged(body)
            step.note = f"{self.samples:,} samples acknowledged"

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _post(self, body: bytes) -> tuple[int, str]:
        self._connection.request("POST", "/api/v1/write", body, _HEADERS)
        answer = self._connection.getresponse()
        return answer.status, answer.read()[:300].decode(errors="replace")
