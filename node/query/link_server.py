"""The shard's end of the link: a Unix socket, and a thread per connection.

It answers from before the shard's start until after its end. A request is cancelled when its connection is closed,
which is checked between the steps of an answer.
"""

import os
import select
import socket
import stat
import struct
import threading
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np
import structlog

from strandline.clock import Clock
from strandline.disk import DiskFull, is_full
from strandline.errors import Fatal, StrandlineError
from strandline.node.query.answer_messages import answer_message, error_message
from strandline.node.query.answers import Answer
from strandline.node.query.frames import FrameDamaged, Message
from strandline.node.query.link_socket import LinkBroken, receive, send, wait_forever
from strandline.node.query.queries import Cancellation, QueryCancelled, QueryUnavailable
from strandline.node.query.request_messages import request_of
from strandline.node.query.shard_requests import ShardRequest
from strandline.node.thread_priority import lower_priority

_LOG = structlog.get_logger(__name__)
REPORT = "report"
MAX_CONNECTIONS = 256
_MAX_PATH = 107
# Bytes. Selectors may have long lists of values.
_MAX_REQUEST = 1 << 24
# The shortest time between checks whether a request's connection is closed.
_POLL_S = 0.02
# How long the front may take to read a part of an answer: as long as the longest query, because it may wait for another
# shard first. A front that gives up closes the connection, which is noticed at once.
_SEND_TIMEOUT_S = 3600.0
_JOIN_TIMEOUT_S = 2.0
_CREDENTIALS = struct.Struct("3i")


class LinkUnusable(Fatal):
    """The socket can't be created."""


class LinkService(Protocol):
    """What the link serves. Thread-safe."""

    def answer(self, request: ShardRequest, cancellation: Cancellation) -> Answer: ...

    def report(self) -> bytes:
        """The process's state, as `ShardReport.to_json` encodes it."""
        ...


class _ConnectionCancellation(Cancellation):
    """Cancels a request when its connection is closed."""

    def __init__(self, clock: Clock, seconds: float, connection: socket.socket) -> None:
        super().__init__(clock, seconds)
        self._monotonic, self._connection = clock.monotonic, connection
        self._checked_at = clock.monotonic()

    def check(self) -> None:
        now = self._monotonic()
        if now - self._checked_at >= _POLL_S:
            self._checked_at = now
            if _is_closed(self._connection):
                self.cancel()
        super().check()


class LinkServer:
    """Serves from its construction until `close`."""

    def __init__(
        self, path: Path, service: LinkService, clock: Clock, *, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        """Listen at a path, for processes of the same user only. The socket of an earlier process is replaced.

        Raises `LinkUnusable` or `DiskFull`.
        """
        self._path, self._service, self._clock = path, service, clock
        self._max_connections = max_connections
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._is_closed = False
        self._listener = _listen(path)
        self._accepting = threading.Thread(target=self._accept, name="link", daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering. Requests in progress are cancelled. Idempotent."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            connections = dict(self._connections)
        self._path.unlink(missing_ok=True)
        # This wakes the threads, which close their sockets themselves.
        _shut_down(self._listener)
        for connection in connections:
            _shut_down(connection)
        for thread in (self._accepting, *connections.values()):
            thread.join(_JOIN_TIMEOUT_S)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._is_closed:
                    return
                _LOG.exception("a connection could not be accepted")
                self._clock.sleep(_POLL_S)
                continue
            self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        # Receiving may block, since the thread has nothing else to do. `send` never blocks.
        connection.setblocking(True)
        thread = threading.Thread(target=self._serve, args=(connection,), name="answering", daemon=True)
        with self._lock:
            if not self._is_closed and len(self._connections) < self._max_connections and _is_own_user(connection):
                self._connections[connection] = thread
                thread.start()
                return
        with connection:
            try:
                refused = QueryUnavailable("the shard has as many connections as it accepts", remedy="Try again later")
                send(connection, error_message(refused), self._wait_to_send)
            except (LinkBroken, QueryCancelled):
                return

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                while not self._is_closed:
                    message = receive(connection, wait_forever, _MAX_REQUEST)
                    send(connection, self._reply(message, connection), self._wait_to_send)
        except (LinkBroken, QueryCancelled, OSError):
            return
        except FrameDamaged as error:
            _LOG.warning("a connection was closed after an invalid frame", error=str(error))
        finally:
            with self._lock:
                self._connections.pop(connection, None)

    def _reply(self, message: Message, connection: socket.socket) -> Message:
        try:
            if message.kind == REPORT:
                return Message(REPORT, {}, (np.frombuffer(self._service.report(), dtype=np.uint8),))
            request, seconds = request_of(message)
            lower_priority()
            return answer_message(
                self._service.answer(request, _ConnectionCancellation(self._clock, seconds, connection))
            )
        except StrandlineError as error:
            return error_message(error)
        except Exception as error:  # noqa: BLE001 - it is logged, and returned to the front
            # A request that fails must get an answer, and must not end the process.
            _LOG.exception("a request failed", kind=message.kind)
            return error_message(error)

    def _wait_to_send(self, connection: socket.socket, events: int) -> None:
        poll = select.poll()
        poll.register(connection, events)
        if not poll.poll(_SEND_TIMEOUT_S * 1000):
            raise QueryCancelled(f"the front did not read the answer for {_SEND_TIMEOUT_S:.0f} s")


def _listen(path: Path) -> socket.socket:
    if len(os.fsencode(path)) > _MAX_PATH:
        raise LinkUnusable(
            f"the socket's path {path} is longer than {_MAX_PATH} bytes", remedy="Use a folder with a shorter name"
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.exists():
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise LinkUnusable(f"{path} exists and is not a socket", remedy="Choose another path, or remove it")
            path.unlink()
        listener.bind(str(path))
        # No process can connect before `listen`.
        path.chmod(0o600)
        listener.listen(MAX_CONNECTIONS)
    except OSError as error:
        listener.close()
        if is_full(error):
            raise DiskFull(path.parent) from error
        raise LinkUnusable(
            f"the socket {path} can't be created: {error.strerror}",
            remedy="Choose a path in an existing folder with write permission",
        ) from error
    except BaseException:
        listener.close()
        raise
    return listener


def _is_own_user(connection: socket.socket) -> bool:
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return user in (os.getuid(), 0)


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _shut_down(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # The other side has closed it.
