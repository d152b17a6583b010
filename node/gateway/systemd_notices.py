"""Notifies systemd of the state of a gateway."""

import asyncio
import os
from collections.abc import Mapping

from strandline.node.systemd.notify import NotifySocket, stopping_notice, watchdog_seconds


class GatewayNotices:
    """What a gateway sends to systemd: READY once it listens, and watchdog pings while its event loop runs. Call its
    methods in that loop.
    """

    def __init__(self, socket: NotifySocket, watchdog_s: float | None = None) -> None:
        self._socket, self._watchdog_s = socket, watchdog_s
        self._next: asyncio.TimerHandle | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "GatewayNotices":
        """Configured by the environment that systemd sets."""
        return cls(NotifySocket.of(environ), watchdog_seconds(environ, os.getpid()))

    def ready(self, status: str) -> None:
        """The gateway accepts requests. Watchdog pings are sent until `stopping`."""
        self._socket.send("READY=1", f"STATUS={status}")
        self._feed()

    def stopping(self, stop_timeout_s: float) -> None:
        """The gateway accepts no more requests, and finishes those in flight within this time."""
        if self._next is not None:
            self._next.cancel()
        self._socket.send(*stopping_notice(stop_timeout_s))

    def _feed(self) -> None:
        if self._watchdog_s is not None and self._socket.is_open:
            self._socket.send("WATCHDOG=1")
            self._next = asyncio.get_running_loop().call_later(self._watchdog_s / 2, self._feed)
