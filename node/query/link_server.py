"""The shard's end of the link: a socket of the machine, and a thread for each connection.

It answers from before the shard's start until after its end. A question is given up when its connection is closed,
which is noticed between the steps of an answer.
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
# In bytes: selectors with long lists of values.
_MAX_REQUEST = 1 << 24
# A question's connection is looked at no more often than this.
_POLL_S = 0.02
# How long whoever asked may take to fetch some of the answer: as long as the longest query, since another shard may
# have to answer first. Whoever gives up closes the connection, which is noticed at once.
_SEND_TIMEOUT_S = 3600.0
_JOIN_TIMEOUT_S = 2.0
_CREDENTIALS = struct.Struct("3i")


class LinkUnusable(Fatal):
    """The socket can't be made."""


class LinkService(Protocol):
    """What is behind the link. Any thread may ask."""

    def answer(self, request: ShardRequest, cancellation: Cancellation) -> Answer: ...

    def report(self) -> bytes:
        """How the shard is, as `ShardReport.to_json` says it."""
        ...


class _ConnectionCancellation(Cancellation):
    """A question over a connection: whoever closes it wants no answer."""

    def __init__(self, clock: Clock, seconds: float, connection: socket.socket) -> None:
        super().__init__(clock, seconds)
        self._time, self._connection = clock, connection
        self._looked = clock.monotonic()

    def check(self) -> None:
        now = self._time.monotonic()
        if now - self._looked >= _POLL_S:
            self._looked = now
            if _is_closed(self._connection):
                self.cancel()
        super().check()


class LinkServer:
    """Serves from the moment it is made until `close`."""

    def __init__(
        self, path: Path, service: LinkService, clock: Clock, *, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        """Listen at a path, for processes of the same user only. A socket that an earlier process left is replaced.

        Raises `LinkUnusable` or `DiskFull`.
        """
        self._path, self._service, self._clock = path, service, clock
        self._max_connections = max_connections
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._is_closed = False
        self._listener = _listening(path)
        self._accepting = threading.Thread(target=self._accept, name="link", daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Answer no more. Answers that are being worked on are given up. Closing twice does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            connections = dict(self._connections)
        self._path.unlink(missing_ok=True)
        # It wakes the threads, which close their sockets themselves.
        _shut(self._listener)
        for connection in connections:
            _shut(connection)
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
                _LOG.exception("a connection could not be taken")
                self._clock.sleep(_POLL_S)
                continue
            self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        # A thread that waits for a question has nothing else to do, so that receiving may block; `send` never does.
        connection.setblocking(True)
        thread = threading.Thread(target=self._serve, args=(connection,), name="answering", daemon=True)
        with self._lock:
            if not self._is_closed and len(self._connections) < self._max_connections and _is_own_user(connection):
                self._connections[connection] = thread
                thread.start()
                return
        with connection:
            try:
                refused = QueryUnavailable("the shard has as many connections as it takes", remedy="Ask again later")
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
            _LOG.warning("a connection is closed", error=str(error))
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
        except Exception as error:  # noqa: BLE001 - it is logged, and told to whoever asked
            # One question that fails must not leave the front without an answer, nor others without a shard.
            _LOG.exception("a question failed", kind=message.kind)
            return error_message(error)

    def _wait_to_send(self, connection: socket.socket, events: int) -> None:
        poll = select.poll()
        poll.register(connection, events)
        if not poll.poll(_SEND_TIMEOUT_S * 1000):
            raise QueryCancelled(f"nobody fetched an answer for {_SEND_TIMEOUT_S:.0f} s")


def _listening(path: Path) -> socket.socket:
    if len(os.fsencode(path)) > _MAX_PATH:
        raise LinkUnusable(
            f"the socket's path {path} is longer than {_MAX_PATH} bytes", remedy="Use a folder with a shorter name"
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.exists():
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise LinkUnusable(f"{path} is there, and no socket", remedy="Name another path, or remove it")
            path.unlink()
        listener.bind(str(path))
        # Nobody can connect before `listen`.
        path.chmod(0o600)
        listener.listen(MAX_CONNECTIONS)
    except OSError as error:
        listener.close()
        if is_full(error):
            raise DiskFull(path.parent) from error
        raise LinkUnusable(
            f"the socket {path} can't be made: {error.strerror}",
            remedy="Name a path in a folder that exists and may be written to",
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


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # The other side was faster.
