"""Requests to a gateway that runs as a process."""

import http.client
import threading
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from strandline.node.bench.gateway_process import GatewayProcess
from support.gateways import HEADERS
from support.real_kafka import TIMEOUT


@dataclass(frozen=True)
class Reply:
    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict)


def request(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Reply:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=TIMEOUT)
    try:
        connection.request(method, where.path, body, {**HEADERS, **headers} if body is not None else headers)
        answer = connection.getresponse()
        return Reply(answer.status, answer.read().decode(), dict(answer.headers))
    finally:
        connection.close()


def write(url: str, body: bytes, **headers: str) -> Reply:
    return request(f"{url}/api/v1/write", "POST", body, **headers)


class WriteInProgress(threading.Thread):
    """A request in progress, in a thread."""

    def __init__(self, url: str, body: bytes) -> None:
        super().__init__(daemon=True)
        self._url, self._body = url, body
        self.reply: Reply | Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.reply = write(self._url, self._body)
        except (OSError, http.client.HTTPException) as error:
            self.reply = error

    def wait_for_reply(self) -> Reply:
        self.join(TIMEOUT)
        assert isinstance(self.reply, Reply), self.reply
        return self.reply


def is_ready(url: str) -> bool:
    return request(f"{url}/-/ready").status == 200


def wait_until_in_flight(gateway: GatewayProcess) -> None:
    gateway.wait_for("a request is in flight", lambda status: status["figures"]["in_flight_bytes"] > 0)
