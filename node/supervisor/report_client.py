"""Fetches the report of a child process over the child's socket. Blocking, with a timeout.

Minimal on purpose: the supervisor fetches the report of every child twice a second, and sends no other requests.
"""

import select
import socket
from pathlib import Path

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.node.query.frames import FrameDamaged, Message
from strandline.node.query.link_socket import LinkBroken, receive, send

REPORT = "report"
"""The kind of the request and of its answer, as in `LinkServer`."""
_MAX_REPORT_BYTES = 1 << 24


class NoReport(Retryable):
    """The child did not report."""


class ReportClient:
    """A client of one child's socket. It outlives the process behind the socket. Not thread-safe."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Does not connect yet."""
        self._path, self._clock = path, clock
        self._connection: socket.socket | None = None

    def fetch(self, timeout: float) -> bytes:
        """The report, as the child wrote it. Raises `NoReport`."""
        deadline = self._clock.monotonic() + timeout
        is_new = self._connection is None
        try:
            return self._fetch(deadline)
        except LinkBroken as error:
            # The connection may be the previous process's: retry at once with a new one.
            self.close()
            if is_new or not error.clean:
                raise NoReport(f"no report: {error}") from error
        except (OSError, FrameDamaged) as error:
            self.close()
            raise NoReport(f"no report: {error}") from error
        except BaseException:
            self.close()
            raise
        return self.fetch(max(0.0, deadline - self._clock.monotonic()))

    def close(self) -> None:
        """Close the connection. The next `fetch` opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _fetch(self, deadline: float) -> bytes:
        def wait(connection: socket.socket, events: int) -> None:
            poll = select.poll()
            poll.register(connection, events)
            if not poll.poll(max(0.0, deadline - self._clock.monotonic()) * 1000):
                raise NoReport("no report: the child did not answer in time")

        if self._connection is None:
            self._connection = self._connected()
        send(self._connection, Message(REPORT, {}), wait)
        answer = receive(self._connection, wait, _MAX_REPORT_BYTES)
        if answer.kind != REPORT or len(answer.columns) != 1:
            raise NoReport(f"no report: the answer is {answer.kind!r}: {answer.fields}")
        return answer.columns[0].tobytes()

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            # A Unix socket connects at once, unless its backlog is full.
            connection.connect(str(self._path))
        except BaseException:
            connection.close()
            raise
        return connection
