"""A node as a service: the supervisor, the HTTP front and what systemd is told, in one event loop, from the start to
the signal that ends it.

- SIGTERM and SIGINT: the front stops taking requests, then the shards are asked to end. A second one ends them at once.
- SIGHUP: the settings are read again, and what can be taken over is. Wrong ones change nothing.
"""

import asyncio
import signal
from collections.abc import Callable
from typing import Any, Protocol

import structlog

from strandline.errors import StrandlineError
from strandline.node.settings.sections import Settings
from strandline.node.supervisor.reloading import Reload
from strandline.node.systemd.notices import NodeNotices, Watched

_LOG = structlog.get_logger(__name__)
_TURN_S = 1.0


class Front(Protocol):
    """The HTTP side of a node. All calls come from the event loop."""

    async def start(self) -> None:
        """Listen. Raises if the address can't be had."""
        ...

    async def stop(self) -> None:
        """Take no more requests, and give those that run a short time."""
        ...

    def reload(self, settings: Settings) -> None:
        """Use these settings from now on: tokens, limits of queries."""
        ...


class Supervised(Watched, Protocol):
    """What the service does with its supervisor."""

    @property
    def settings(self) -> Settings: ...

    @property
    def has_ended(self) -> bool: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def reload(self, read: Settings) -> Reload: ...

    def raise_failure(self) -> None: ...


class NodeService:
    """One run of a node. `run` is its main task, in the main thread: signals are handled in its loop."""

    def __init__(
        self,
        supervisor: Supervised,
        front: Front,
        notices: NodeNotices,
        *,
        read_settings: Callable[[], Settings],
        apply: Callable[[Settings], None] = lambda _: None,
    ) -> None:
        """`read_settings` reads them again, and raises `SettingsError`; `apply` has the process itself follow those
        that are in force after a reload, as its log does.
        """
        self._supervisor, self._front, self._notices = supervisor, front, notices
        self._read_settings, self._apply = read_settings, apply
        self._stopping = asyncio.Event()
        self._reloading = asyncio.Lock()
        self._reloads: set[asyncio.Task[Any]] = set()

    async def run(self) -> None:
        """Serve until a signal or a failure ends it. Raises what failed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_stop, number)
        loop.add_signal_handler(signal.SIGHUP, self.ask_for_reload)
        try:
            self._notices.check(self._supervisor.settings.node)
            await self._front.start()
            try:
                await self._supervise()
            finally:
                await self._stop()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)
            self._notices.close()

    def ask_for_reload(self) -> None:
        """Reload soon; from the event loop. One reload follows the other."""
        task = asyncio.get_running_loop().create_task(self._reload_or_say())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def reload(self) -> Reload:
        """Read the settings again and follow them. Raises what is wrong with them, with nothing changed. It goes on to
        its end though nobody may wait for it any more: half a reload would leave old tokens in force.
        """
        task = asyncio.get_running_loop().create_task(self._reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)
        return await asyncio.shield(task)

    async def _reload(self) -> Reload:
        async with self._reloading:
            self._notices.reloading()
            try:
                read = await asyncio.to_thread(self._read_settings)
                outcome = await asyncio.to_thread(self._supervisor.reload, read)
                self._apply(outcome.settings)
                self._front.reload(outcome.settings)
                self._notices.check(outcome.settings.node)
            finally:
                self._notices.reloaded()
            return outcome

    async def _reload_or_say(self) -> None:
        try:
            await self.reload()
        except StrandlineError as error:
            _LOG.error("the settings are not taken over; those from before stay in force", error=str(error))

    async def _supervise(self) -> None:
        starting = asyncio.create_task(asyncio.to_thread(self._supervisor.start))
        while not self._stopping.is_set() and not self._supervisor.has_ended:
            if starting.done():
                starting.result()
            self._notices.turn()
            try:
                await asyncio.wait_for(self._stopping.wait(), _TURN_S)
            except TimeoutError:
                continue
        # A thread can't be called off: what it has started is ended by the stop.
        await starting
        self._supervisor.raise_failure()

    async def _stop(self) -> None:
        _LOG.info("the node stops")
        self._notices.stopping(self._supervisor.settings.node.stop_timeout.seconds)
        try:
            await self._front.stop()
        finally:
            await asyncio.to_thread(self._supervisor.stop)

    def _asked_to_stop(self, number: signal.Signals) -> None:
        if self._stopping.is_set():
            _LOG.warning("a second signal: the shards are ended at once", signal=number.name)
            self._supervisor.kill()
        else:
            _LOG.info("asked to stop", signal=number.name)
            self._stopping.set()
