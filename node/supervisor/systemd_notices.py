"""Notifies systemd of the state of a node."""

import os
from collections.abc import Mapping
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.node.settings.http_sections import NodeSettings
from strandline.node.status.processes import ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.supervisor import Heartbeats
from strandline.node.supervisor.systemd_status import WATCHDOG, NodeObservation, Notified, notifications
from strandline.node.systemd.notify import NotifySocket, stopping_notice, watchdog_seconds

_LOG = structlog.get_logger(__name__)


class Watched(Protocol):
    """The source of the notifications: a `Supervisor`, or a substitute in tests."""

    @property
    def waits_for(self) -> str: ...

    def shards(self) -> tuple[ShardProcessStatus, ...]: ...

    def processes(self) -> tuple[ProcessStatus, ...]: ...

    def heartbeats(self) -> Heartbeats: ...


class NodeNotices:
    """Sends a node's notifications to systemd. Call its methods in the event loop, so that the watchdog is not fed if
    the loop hangs.
    """

    def __init__(self, node: Watched, socket: NotifySocket, clock: Clock, watchdog_s: float | None = None) -> None:
        self._node, self._socket, self._clock, self._watchdog_s = node, socket, clock, watchdog_s
        self.feeds = 0
        """The number of notifications to the watchdog."""
        self._notified = Notified()
        self._over = False

    @classmethod
    def of(cls, node: Watched, environ: Mapping[str, str], clock: Clock) -> "NodeNotices":
        """Configured by the environment that systemd sets."""
        return cls(node, NotifySocket.of(environ), clock, watchdog_seconds(environ, os.getpid()))

    def check(self, settings: NodeSettings) -> None:
        """Warn if systemd would kill the whole node for a hung shard that the supervisor would restart."""
        if self._watchdog_s is not None and self._watchdog_s < 2 * settings.hang_after.seconds:
            _LOG.warning(
                "WatchdogSec= of the unit should be at least twice node.hang_after: otherwise systemd kills the whole "
                "node for a shard that hangs, before the supervisor restarts that shard",
                watchdog_s=self._watchdog_s,
                hang_after_s=settings.hang_after.seconds,
            )

    def update(self) -> None:
        """Send what has changed. Call it about once a second."""
        if self._over or not self._socket.is_open:
            return
        seen = NodeObservation(
            self._node.shards(),
            self._node.heartbeats(),
            self._clock.monotonic(),
            self._clock.now_ms(),
            self._node.waits_for,
            self._node.processes(),
        )
        lines, self._notified = notifications(self._notified, seen, self._watchdog_s)
        self._socket.send(*lines)
        self.feeds += WATCHDOG in lines

    def reloading(self) -> None:
        """A reload begins. Not sent before READY=1: systemd would take its end for the end of the start."""
        if self._notified.ready:
            self._socket.send("RELOADING=1", f"MONOTONIC_USEC={round(self._clock.monotonic() * 1_000_000)}")

    def reloaded(self) -> None:
        """The reload has ended."""
        if self._notified.ready:
            self._socket.send("READY=1")

    def stopping(self, stop_timeout_s: float) -> None:
        """The node stops within this time. Nothing is sent after this."""
        self._over = True
        self._socket.send(*stopping_notice(stop_timeout_s))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
