"""A node as a service: the supervisor, its control socket and the notifications to systemd, in one event loop.

- SIGTERM and SIGINT: stop. The front finishes its requests, then the shards are terminated. A second signal kills all
  children at once.
- SIGHUP: reload the settings, also in the front, and apply those that need no restart. Invalid ones change nothing.
- SIGCHLD: a child has ended; check the children now instead of in the next iteration.
"""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.node.settings.sections import Settings
from strandline.node.shard.report import ProcessFigures
from strandline.node.status.processes import FRONT, ProcessState
from strandline.node.supervisor.control_server import ControlServer
from strandline.node.supervisor.node_state import NodeState
from strandline.node.supervisor.reloading import Reload
from strandline.node.supervisor.systemd_notices import NodeNotices, Watched

_LOG = structlog.get_logger(__name__)
_LOOP_INTERVAL_S = 1.0
# How long a reload waits for the front to apply it, so that it is in force when `systemctl reload` returns.
_FRONT_RELOAD_TIMEOUT_S = 5.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


class Supervised(Watched, Protocol):
    """The part of `Supervisor` that the service uses."""

    on_publish: Callable[[], None]

    @property
    def settings(self) -> Settings: ...

    @property
    def has_ended(self) -> bool: ...

    def partitions(self) -> int | None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def wake(self) -> None: ...

    def reload(self, read: Settings) -> Reload: ...

    def restart_shard(self, shard: int) -> None: ...

    def raise_failure(self) -> None: ...


class NodeService:
    """One run of a node. `run` is the main task of the main thread: signals are handled in its event loop."""

    def __init__(
        self,
        supervisor: Supervised,
        notices: NodeNotices,
        control: Path,
        clock: Clock,
        *,
        read_settings: Callable[[], Settings],
        apply: Callable[[Settings], None] = lambda _: None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`control` is the path of the control socket. `read_settings` reads the settings again, and raises an error
        if they are invalid. `apply` applies the settings of a reload to this process, for example to its log. `on_stop`
        is called when the node begins to stop.
        """
        self._supervisor, self._notices = supervisor, notices
        self._read_settings, self._apply, self._on_stop = read_settings, apply, on_stop
        self._control = ControlServer(control, self)
        self._started_at = clock.now_ms()
        self._settings_read = 0
        self._stopping = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._reload_tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> None:
        """Serve until a signal, or raise the error that ended the supervisor."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_stop_signal, number)
        loop.add_signal_handler(signal.SIGHUP, self.request_reload)
        loop.add_signal_handler(signal.SIGCHLD, self._supervisor.wake)
        self._supervisor.on_publish = self._control.publish
        try:
            self._notices.check(self._supervisor.settings.node)
            await self._control.start()
            try:
                await self._supervise()
            finally:
                await self._stop()
        finally:
            await self._control.close()
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
            self._notices.close()

    def state(self, version: int) -> NodeState:
        """The current state of the node."""
        return NodeState(
            version,
            self._settings_read,
            self._supervisor.shards(),
            self._supervisor.processes(),
            self._supervisor.waits_for,
            self._started_at,
            self._notices.feeds,
            ProcessFigures.now(),
            self._supervisor.partitions(),
        )

    def restart_shard(self, shard: int) -> None:
        """Start a new process for a shard. Raises `NoSuchShard`."""
        self._supervisor.restart_shard(shard)

    def request_reload(self) -> None:
        """Start a reload, without waiting for it. Call it in the event loop. Reloads run one after the other."""
        self._keep(asyncio.get_running_loop().create_task(self._reload_or_log()))

    async def reload(self) -> Reload:
        """Read the settings again and apply them. If they are invalid, raises their error and changes nothing. A reload
        completes even if the caller is cancelled: half a reload would leave old tokens in force.
        """
        task = asyncio.get_running_loop().create_task(self._reload())
        self._keep(task)
        return await asyncio.shield(task)

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._reload_tasks.add(task)
        task.add_done_callback(self._reload_tasks.discard)

    async def _reload(self) -> Reload:
        async with self._reloading:
            self._notices.reloading()
            try:
                read = await asyncio.to_thread(self._read_settings)
                outcome = await asyncio.to_thread(self._supervisor.reload, read)
                self._apply(outcome.settings)
                self._settings_read += 1
                self._control.publish()
                follows = await self._control.front_has_settings(
                    self._settings_read, self._front_is_running, _FRONT_RELOAD_TIMEOUT_S
                )
                if not follows and self._front_is_running():
                    _LOG.warning("the front has not applied the settings yet", waited_s=_FRONT_RELOAD_TIMEOUT_S)
                self._notices.check(outcome.settings.node)
            finally:
                self._notices.reloaded()
            return outcome

    def _front_is_running(self) -> bool:
        """Whether a front is running. One that starts later reads the settings itself."""
        fronts = (process for process in self._supervisor.processes() if process.name == FRONT)
        return any(front.state is ProcessState.RUNNING for front in fronts)

    async def _reload_or_log(self) -> None:
        try:
            await self.reload()
        except StrandlineError as error:
            _LOG.error("reload failed, the previous settings stay in force", error=str(error))

    async def _supervise(self) -> None:
        self._supervisor.start()
        while not self._stopping.is_set() and not self._supervisor.has_ended:
            self._notices.update()
            try:
                await asyncio.wait_for(self._stopping.wait(), _LOOP_INTERVAL_S)
            except TimeoutError:
                continue
        self._supervisor.raise_failure()

    async def _stop(self) -> None:
        _LOG.info("the node stops")
        self._notices.stopping(self._supervisor.settings.node.stop_timeout.seconds)
        self._on_stop()
        await asyncio.to_thread(self._supervisor.stop)

    def _on_stop_signal(self, number: signal.Signals) -> None:
        if self._stopping.is_set():
            _LOG.warning("second signal: killing all processes", signal=number.name)
            self._supervisor.kill()
        else:
            _LOG.info("signal received, stopping", signal=number.name)
            self._stopping.set()
