"""One run of the front's process: serving, reloading settings, and reporting its loop iterations."""

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
_LOOP_INTERVAL_S = 0.25


class NoListener(Fatal):
    """The inherited descriptor is not a listening socket."""

    exit_code = ExitCode.USAGE


class TokensDoNotFit(Fatal):
    """The tokens of the settings are not sufficient for the address that the node listens on."""

    exit_code = ExitCode.USAGE


class Front(Protocol):
    """The HTTP side of a node. All calls come from the event loop."""

    @property
    def has_kernels(self) -> bool:
        """Whether all kernels are compiled, so that no query waits for one."""
        ...

    async def start(self) -> None:
        """Serve the listener."""
        ...

    async def stop(self) -> None:
        """Accept no more requests, and wait for the current ones for a short time."""
        ...

    def reload(self, settings: Settings) -> None:
        """Use the tokens and query limits of these settings from now on."""
        ...


class Supervisor(Protocol):
    """What the front needs of the supervisor."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def reload(self) -> tuple[Change, ...]: ...


def inherited_listener(descriptor: int) -> socket.socket:
    """The listening socket that the supervisor has passed on. Raises `NoListener`."""
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
        f"descriptor {descriptor} is not a listening socket", remedy="Use `strandline node`, which starts this command"
    )


def settings_for(listener: socket.socket, settings: Settings) -> Settings:
    """The settings with the address of the listening socket. The file may have another address by now, which applies
    after a restart of the node. Raises `TokensDoNotFit` if the tokens are not sufficient for the listening address.
    """
    bound = address_of(listener, tls=False)
    host, port = split_listen_address(settings.http.node_address)
    if ("127.0.0.1" if host == "localhost" else host) != bound.host or port not in (0, bound.port):
        address = f"[{bound.host}]:{bound.port}" if ":" in bound.host else f"{bound.host}:{bound.port}"
        settings = settings.model_copy(update={"http": settings.http.model_copy(update={"node_address": address})})
    for finding in settings.http.findings():
        raise TokensDoNotFit(
            f"the node still listens on {settings.http.node_address}: http.{'.'.join(finding.at)} {finding.what}",
            remedy=f"{finding.remedy}; or restart the node to use the new address",
        )
    return settings


class FrontRun:
    """The front from its start to the signal that ends it. `run` is the main task, in the main thread."""

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
        """`reports` is the socket at which the front reports. `read_settings` reads the settings, and `apply` applies
        new settings to the process itself, for example to its log.
        """
        self._front, self._supervisor, self._settings = front, supervisor, settings
        self._reports, self._clock = reports, clock
        self._read_settings, self._apply = read_settings, apply
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Serve until a signal. Raises the error that ended it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        # The supervisor announces reloads; the front ignores the signal.
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
        try:
            await self._supervisor.start()
            await self._front.start()
            reports = ProcessReports(self._stage())
            # Only when it serves: the supervisor considers the front as running from its first report on.
            with LinkServer(self._reports, reports, self._clock):
                while not self._stopping.is_set():
                    reports.stage = self._stage()
                    reports.iterated()
                    try:
                        await asyncio.wait_for(self._stopping.wait(), _LOOP_INTERVAL_S)
                    except TimeoutError:
                        continue
        finally:
            await self._front.stop()
            await self._supervisor.close()

    def _stage(self) -> Stage:
        # A query before its kernels are compiled blocks the event loop, for seconds in a new installation. In the stage
        # STEADY, the supervisor would treat that as hanging.
        return Stage.STEADY if self._front.has_kernels else Stage.STARTING

    async def reload(self) -> None:
        """Read and apply the settings, after the node has reloaded them. Raises if they are invalid, with nothing
        changed.
        """
        read = await asyncio.to_thread(self._read_settings)
        outcome = reloaded(self._settings, read)
        self._front.reload(outcome.settings)
        self._apply(outcome.settings)
        self._settings = outcome.settings

    async def reload_node(self) -> Reload:
        """Make the node reload its settings. Returns what has changed."""
        changes = await self._supervisor.reload()
        return Reload(self._settings, changes)
