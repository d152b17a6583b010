"""A proxy in front of a shared server, so that a test can make the server hang or disappear for itself."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class StallingProxy:
    """Forwards bytes in both directions between its own port on loopback and another one."""

    def __init__(self, port: int) -> None:
        self._target = port
        # Bound but never listening: the port stays reserved while the server is unreachable.
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", 0))
        self.port: int = self._held.getsockname()[1]
        self._passes = threading.Event()
        self._passes.set()
        self._open: list[socket.socket] = []
        self._listener = self._listen()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """A context in which connections stay open, but no bytes are forwarded."""
        self._passes.clear()
        try:
            yield
        finally:
            self._passes.set()

    @contextmanager
    def away(self) -> Iterator[None]:
        """A context in which open connections are closed and new ones refused."""
        self._end_all()
        try:
            yield
        finally:
            self._listener = self._listen()

    def close(self) -> None:
        self._passes.set()
        self._end_all()
        self._held.close()

    def _listen(self) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _end_all(self) -> None:
        ended, self._open = [self._listener, *self._open], []
        for connection in ended:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._open += (client, server)
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._passes.wait()
                target.sendall(data)
        for connection in (source, target):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
