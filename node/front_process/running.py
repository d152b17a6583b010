"""One run of the front's process: what it serves, what it follows, and its observed of life."""

import asyncio
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal
from strandline.node.http.listening import address_of
from strandline.node.query.link_server import LinkServer
from strandline.node.settings.fields import split_listen_address
from strandline.node.settings.sections import Settings
from strandline.node.supervisor.liveness import Stage
from strandline.node.supervisor.process_reports import ProcessReports
from strandline.node.supervisor.reloading import Change, Reload, reloaded

_LOG = structlog.get_logger(__name__)
_TURN_S = 0.25


class NoListener(Fatal):
    """The descriptor that was given is no listening socket."""

    exit_code = ExitCode.USAGE


class TokensDoNotFit(Fatal):
    """The settings leave the address open that the node listens on."""

    exit_code = ExitCode.USAGE


class Front(Protocol):
    """The HTTP side of a node. All calls come from the event loop."""

    @property
    def has_kernels(self) -> bool:
        """Whether no query has to wait for a kernel that is still being compiled."""
        ...

    async def start(self) -> None:
        """Serve the listener."""
        ...

    async def stop(self) -> None:
        """Take no more requests, and give those that run a short time."""
        ...

    def reload(self, settings: Settings) -> None:
        """Use these settings from now on: tokens, limits of queries."""
        ...


class Supervisor(Protocol):
    """The node's supervisor, as far as this run needs it."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def reload(self) -> tuple[Change, ...]: ...


def inherited_listener(descriptor: int) -> socket.socket:
    """The listening socket that the supervisor has handed on. Raises `NoListener`."""
    try:
        listener = socket.socket(fileno=descriptor)
        is_listening = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise _no_listener(descriptor) from error
    if not is_listening:
        raise _no_listener(descriptor)
    listener.setblocking(False)
    return listener


def _no_listener(descriptor: int) -> NoListener:
    return NoListener(
        f"descriptor {descriptor} is no listening socket", remedy="`strandline node` starts this command with one"
    )


def settings_for(listener: socket.socket, settings: Settings) -> Settings:
    """The settings with the address that is really listened on: the file may name another one by now, which counts
    when the node is restarted. Raises `TokensDoNotFit` if the tokens would leave that address open.
    """
    bound = address_of(listener, tls=False)
    host, port = split_listen_address(settings.http.node_address)
    if ("127.0.0.1" if host == "localhost" else host) != bound.host or port not in (0, bound.port):
        address = f"[{bound.host}]:{bound.port}" if ":" in bound.host else f"{bound.host}:{bound.port}"
        settings = settings.model_copy(update={"http": settings.http.model_copy(update={"node_address": address})})
    for finding in settings.http.findings():
        raise TokensDoNotFit(
            f"the node still listens on {settings.http.node_address}: http.{'.'.join(finding.at)} {finding.what}",
            remedy=f"{finding.remedy}; or restart the node to listen elsewhere",
        )
    return settings


class FrontRun:
    """The front from its start to the signal that ends it. `run` is its main task, in the main thread."""

    def __init__(
        self,
        front: Front,
        supervisor: Supervisor,
        settings: Settings,
        reports: Path,
        clock: Clock,
        *,
        read_settings: Callable[[], Settings],
        apply: Callable[[Settings], None] = lambda _: None,
    ) -> None:
        """`reports` is the socket at which the front reports. `read_settings` reads the settings again, and `apply` has
        the process itself follow those in force, as its log does.
        """
        self._front, self._supervisor, self._settings = front, supervisor, settings
        self._reports, self._clock = reports, clock
        self._read_settings, self._apply = read_settings, apply
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal ends it. Raises what failed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        # The supervisor hears of a new settings file, and says so.
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
        try:
            await self._supervisor.start()
            await self._front.start()
            reports = ProcessReports(self._stage())
            # Not before it serves: from its first report on the front counts as running.
            with LinkServer(self._reports, reports, self._clock):
                while not self._stopping.is_set():
                    reports.stage = self._stage()
                    reports.iterated()
                    try:
                        await asyncio.wait_for(self._stopping.wait(), _TURN_S)
                    except TimeoutError:
                        continue
        finally:
            await self._front.stop()
            await self._supervisor.close()

    def _stage(self) -> Stage:
        # A query that comes before its kernels are compiled blocks the event loop until they are, for seconds in a new
        # installation. A steady front would be taken for one that hangs.
        return Stage.STEADY if self._front.has_kernels else Stage.STARTING

    async def follow(self) -> None:
        """The node has read its settings again: do the same. Raises what is wrong with them, with nothing changed."""
        read = await asyncio.to_thread(self._read_settings)
        outcome = reloaded(self._settings, read)
        self._front.reload(outcome.settings)
        self._apply(outcome.settings)
        self._settings = outcome.settings

    async def reload_node(self) -> Reload:
        """Have the node read its settings again: what has changed."""
        changes = await self._supervisor.reload()
        return Reload(self._settings, changes)
