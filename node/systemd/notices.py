"""Tells systemd how a node or a gateway is, turn by turn."""

import asyncio
import os
from collections.abc import Mapping
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.node.settings.http_sections import NodeSettings
from strandline.node.supervisor.standing import ProcessStanding, ShardStanding
from strandline.node.supervisor.supervisor import Vitals
from strandline.node.systemd.notify import NotifySocket, watchdog_seconds
from strandline.node.systemd.telling import WATCHDOG, Seen, Told, tell

_LOG = structlog.get_logger(__name__)
# What the supervisor may need itself, after its processes have ended.
_STOP_SLACK_S = 15.0


class Watched(Protocol):
    """The node, as far as systemd is interested."""

    @property
    def waits_for(self) -> str: ...

    def shards(self) -> tuple[ShardStanding, ...]: ...

    def processes(self) -> tuple[ProcessStanding, ...]: ...

    def vitals(self) -> Vitals: ...


class NodeNotices:
    """A node's side of the talk with systemd. Its methods belong to the event loop: if that hangs, the watchdog is not
    fed.
    """

    def __init__(self, node: Watched, socket: NotifySocket, clock: Clock, watchdog_s: float | None = None) -> None:
        self._node, self._socket, self._clock, self._watchdog_s = node, socket, clock, watchdog_s
        self.feeds = 0
        """How often the watchdog was fed."""
        self._told = Told()
        self._over = False

    @classmethod
    def of(cls, node: Watched, environ: Mapping[str, str], clock: Clock) -> "NodeNotices":
        """As the environment asks for."""
        return cls(node, NotifySocket.of(environ), clock, watchdog_seconds(environ, os.getpid()))

    def check(self, settings: NodeSettings) -> None:
        """Say so if systemd would end the whole node for a shard that the supervisor would mend."""
        if self._watchdog_s is not None and self._watchdog_s < 2 * settings.hang_after.seconds:
            _LOG.warning(
                "WatchdogSec= of the unit should be at least twice node.hang_after: systemd ends the whole node for a "
                "shard that hangs, before the supervisor ends that one",
                watchdog_s=self._watchdog_s,
                hang_after_s=settings.hang_after.seconds,
            )

    def turn(self) -> None:
        """Tell what is new. To be called about once a second."""
        if self._over or not self._socket.is_heard:
            return
        seen = Seen(
            self._node.shards(),
            self._node.vitals(),
            self._clock.monotonic(),
            self._clock.now_ms(),
            self._node.waits_for,
            self._node.processes(),
        )
        lines, self._told = tell(self._told, seen, self._watchdog_s)
        self._socket.send(*lines)
        self.feeds += WATCHDOG in lines

    def reloading(self) -> None:
        """A reload begins. While the start goes on systemd is not told: it would take the end of the reload for that
        of the start.
        """
        if self._told.ready:
            self._socket.send("RELOADING=1", f"MONOTONIC_USEC={round(self._clock.monotonic() * 1_000_000)}")

    def reloaded(self) -> None:
        """It is over."""
        if self._told.ready:
            self._socket.send("READY=1")

    def stopping(self, stop_timeout_s: float) -> None:
        """The node ends, which may take so long. After this nothing else is told."""
        self._over = True
        microseconds = round((stop_timeout_s + _STOP_SLACK_S) * 1_000_000)
        self._socket.send("STOPPING=1", "STATUS=stopping", f"EXTEND_TIMEOUT_USEC={microseconds}")

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()


class GatewayNotices:
    """A gateway's side of the talk with systemd: it is ready when it listens, and lives as long as its event loop
    turns. Its methods belong to that loop.
    """

    def __init__(self, socket: NotifySocket, watchdog_s: float | None = None) -> None:
        self._socket, self._watchdog_s = socket, watchdog_s
        self._next: asyncio.TimerHandle | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "GatewayNotices":
        """As the environment asks for."""
        return cls(NotifySocket.of(environ), watchdog_seconds(environ, os.getpid()))

    def ready(self, status: str) -> None:
        """Requests are answered from now on; the watchdog is fed until it stops."""
        self._socket.send("READY=1", f"STATUS={status}")
        self._feed()

    def stopping(self, stop_timeout_s: float) -> None:
        """It takes no more requests, and needs so long for those that it has."""
        if self._next is not None:
            self._next.cancel()
        microseconds = round((stop_timeout_s + _STOP_SLACK_S) * 1_000_000)
        self._socket.send("STOPPING=1", "STATUS=stopping", f"EXTEND_TIMEOUT_USEC={microseconds}")

    def _feed(self) -> None:
        if self._watchdog_s is not None and self._socket.is_heard:
            self._socket.send("WATCHDOG=1")
            self._next = asyncio.get_running_loop().call_later(self._watchdog_s / 2, self._feed)
