"""Asks a child process for its report, over the child's own socket. Blocking, with a time limit.

Small on purpose: the supervisor asks every child twice a second and asks them nothing else.
"""

import select
import socket
from pathlib import Path

from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.node.query.frames import FrameDamaged, Message
from strandline.node.query.link_socket import LinkBroken, receive, send

REPORT = "report"
"""The kind of the question and of its answer, as `LinkServer` has it."""
_MAX_REPORT_BYTES = 1 << 24


class NoReport(Retryable):
    """The child did not report."""


class ReportClient:
    """One child's socket, for as long as the supervisor runs: the process behind it may change. One thread calls it."""

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
            # The process before it may have left the connection: the next one is asked over a new one, at once.
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
        """Close the connection. The next question opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _fetch(self, deadline: float) -> bytes:
        def wait(connection: socket.socket, events: int) -> None:
            poll = select.poll()
            poll.register(connection, events)
            if not poll.poll(max(0.0, deadline - self._clock.monotonic()) * 1000):
                raise NoReport("no report within the time limit")

        if self._connection is None:
            self._connection = self._connected()
        send(self._connection, Message(REPORT, {}), wait)
        answer = receive(self._connection, wait, _MAX_REPORT_BYTES)
        if answer.kind != REPORT or len(answer.columns) != 1:
            raise NoReport(f"no report, but {answer.kind!r}: {answer.fields}")
        return answer.columns[0].tobytes()

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            # Of a socket of the machine: it connects at once, or its backlog is full.
            connection.connect(str(self._path))
        except BaseException:
            connection.close()
            raise
        return connection
