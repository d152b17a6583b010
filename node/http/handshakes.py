"""Accepting clients that speak TLS. Each holds a socket before its handshake is done and there is a connection to be
counted. So handshakes are counted here: a client that never shakes hands takes the place of another such client.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

HANDSHAKES = 128
"""So many clients may be shaking hands at a time. When one more comes, the one that has taken longest is cut off."""

_LONGEST_S = 10.0
_NO_FILES_S = 1.0


class TlsListener:
    """Accepts at a socket until it is closed, and gives each client that has shaken hands a protocol. It belongs to one
    event loop.
    """

    def __init__(
        self, listener: socket.socket, context: ssl.SSLContext, connection: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listener, self._context, self._connection = listener, context, connection
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    def close(self) -> None:
        """Accept no more clients, and cut off those that are shaking hands."""
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
                # As many files are open as may be: some will be closed.
                log.warning("a connection could not be accepted", error=str(error))
                await asyncio.sleep(_NO_FILES_S)
                continue
            client.setblocking(False)
            if len(self._handshakes) >= HANDSHAKES:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            handshake = loop.create_task(self._shake_hands(client))
            self._handshakes[handshake] = None
            handshake.add_done_callback(lambda one: self._handshakes.pop(one, None))

    async def _shake_hands(self, client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connection, client, ssl=self._context, ssl_handshake_timeout=_LONGEST_S
            )
        except OSError:
            # The client has left, speaks no TLS, or has taken too long.
            client.close()
        except asyncio.CancelledError:
            client.close()
            raise
