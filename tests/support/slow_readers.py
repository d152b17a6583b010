"""Clients that request a long answer and read it slowly."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

READ_SIZE = 1 << 10
# Above http.min_rate for each client, so that only the query's timeout ends the request.
_PAUSE_S = 0.1


@dataclass
class SlowReader:
    """One client: what it has received so far, and whether the server has closed the connection."""

    connection: socket.socket
    received: bytearray = field(default_factory=bytearray)
    is_ended: bool = False

    @property
    def status(self) -> int | None:
        """The status; None before the answer has begun."""
        return int(self.received.split(b" ", 2)[1]) if self.received.count(b" ") > 1 else None

    def read_some(self) -> None:
        try:
            data = self.connection.recv(READ_SIZE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.received += data
        self.is_ended |= not data


class SlowReaders:
    """Slow clients of one path, while the context is active. One thread reads for all of them."""

    def __init__(self, address: str, target: str, count: int) -> None:
        host, _, port = address.rpartition(":")
        self._place, self._target, self._count = (host, int(port)), target, count
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._read_slowly, daemon=True)
        self.clients: list[SlowReader] = []

    def __enter__(self) -> "SlowReaders":
        for _ in range(self._count):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(self._place)
            head = f"GET {self._target} HTTP/1.1\r\nHost: {self._place[0]}\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode())
            self.clients.append(SlowReader(connection))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._thread.join()
        for client in self.clients:
            with suppress(OSError):
                client.connection.close()

    def all_have_an_answer(self) -> bool:
        return all(client.status is not None for client in self.clients)

    def with_status(self, status: int) -> list[SlowReader]:
        return [client for client in self.clients if client.status == status]

    def _read_slowly(self) -> None:
        while not self._left.wait(_PAUSE_S):
            for client in self.clients:
                if not client.is_ended:
                    client.read_some()
