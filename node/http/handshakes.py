"""Accepts TLS clients. A client holds a socket before its handshake is complete, when it does not count as a connection
yet. So handshakes have their own limit: a client that never completes its handshake takes the place of another such
client.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

MAX_HANDSHAKES = 128
"""The maximum number of concurrent handshakes. For one more, the oldest one is cancelled."""

_HANDSHAKE_TIMEOUT_S = 10.0
_ACCEPT_RETRY_S = 1.0


class TlsListener:
    """Accepts clients until it is closed, and creates a protocol for each that has completed its handshake. For one
    event loop.
    """

    def __init__(
        self, listener: socket.socket, context: ssl.SSLContext, connection: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listener, self._context, self._connection = listener, context, connection
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accept no more clients, and cancel handshakes."""
        self._accepting.cancel()
        for handshake in self._handshakes:
            handshake.cancel()
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                # Too many open files: some will be closed.
                log.warning("a connection could not be accepted", error=str(error))
                await asyncio.sleep(_ACCEPT_RETRY_S)
                continue
            client.setblocking(False)
            if len(self._handshakes) >= MAX_HANDSHAKES:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            handshake = loop.create_task(self._shake_hands(client))
            self._handshakes[handshake] = None
            handshake.add_done_callback(lambda one: self._handshakes.pop(one, None))

    async def _shake_hands(self, client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connection, client, ssl=self._context, ssl_handshake_timeout=_HANDSHAKE_TIMEOUT_S
            )
        except OSError:
            # The client has closed the connection, does not use TLS, or has taken too long.
            client.close()
        except asyncio.CancelledError:
            client.close()
            raise
