"""The life of the gateway's process: listen, serve until a signal, finish the requests in progress, and end."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from strandline.errors import Fatal, StrandlineError
from strandline.node.gateway.gateway import Gateway
from strandline.node.gateway.heap import MemoryTrimmer
from strandline.node.gateway.status_file import GatewayStatusFile
from strandline.node.gateway.systemd_notices import GatewayNotices
from strandline.node.http.listening import BoundAddress
from strandline.node.http.routes import Route
from strandline.node.http.server import HttpServer
from strandline.node.masking import SecretMask
from strandline.node.settings.http_sections import HttpSettings
from strandline.node.settings.sections import Settings

_LOG = structlog.get_logger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_STATUS_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True)
class Service:
    """How the gateway is served.

    `on_listening` is called when the server accepts requests. `reload` reads the settings again on SIGHUP, from which
    the tokens and the certificate are used. `environ` has systemd's variables, if there are any. `status_file` is None
    for no status file.
    """

    settings: Settings
    mask: SecretMask
    extra_routes: tuple[Route, ...] = ()
    on_listening: Callable[[BoundAddress], None] = lambda _: None
    reload: Callable[[], Settings] | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    status_file: Path | None = None


_RELOADED = (
    "tls_certificate_file",
    "tls_key_file",
    "tls_key_password_file",
    "read_token_file",
    "write_token_file",
    "admin_token_file",
)


class UnsafeReload(Fatal):
    """Reloaded settings that are not valid for the running gateway."""


async def serve(gateway: Gateway, service: Service) -> None:
    """Serve until SIGTERM or SIGINT. Then accept no more requests, finish those in progress within `gateway.timeout`,
    and return. A second signal ends the process immediately.
    """
    settings, stop = service.settings, asyncio.Event()
    limit_s = settings.gateway.timeout.seconds
    server = HttpServer(
        (*gateway.routes(), *service.extra_routes),
        settings.http,
        settings.http.gateway_address,
        max_body=settings.gateway.max_body.bytes,
        mask=service.mask,
        observer=gateway.observer,
    )
    notices = GatewayNotices.of(service.environ)
    loop = asyncio.get_running_loop()
    _handle_signals(stop, server, service)
    began = loop.time()
    try:
        bound = await server.start()
        await _serve_until(stop, gateway, service, bound, notices)
        began = loop.time()
        gateway.begin_stop()
        notices.stopping(limit_s)
        _LOG.info("stopping", in_flight_bytes=gateway.figures().in_flight_bytes)
        await server.stop(limit_s)
    finally:
        await gateway.close(max(0.0, limit_s - (loop.time() - began)))
    _LOG.info("stopped")


async def _serve_until(
    stop: asyncio.Event, gateway: Gateway, service: Service, bound: BoundAddress, notices: GatewayNotices
) -> None:
    """Serve until `stop` is set, and write the status file meanwhile."""
    status = GatewayStatusFile(service.status_file, gateway, bound.url) if service.status_file is not None else None
    if status is not None:
        status.write()
    memory = MemoryTrimmer()
    service.on_listening(bound)
    notices.ready(f"takes remote writes at {bound.url}")
    while not stop.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_STATUS_INTERVAL_S):
                await stop.wait()
        memory.trim_if_idle(gateway.figures(), asyncio.get_running_loop().time())
        if status is not None:
            status.write_or_log()


def reloaded_http(running: HttpSettings, read: HttpSettings) -> HttpSettings:
    """The running settings with the tokens and the certificate of the new ones. Raises `UnsafeReload` if the current
    address would then be unprotected.
    """
    taken = running.model_copy(update={name: getattr(read, name) for name in _RELOADED})
    if next(taken.findings(), None) is not None:
        raise UnsafeReload(
            f"the new tokens and certificate are not sufficient for {running.gateway_address}, the address in use "
            "until a restart",
            remedy="Restart the gateway to listen on the new address, or set the tokens that this address requires",
        )
    return taken


def _handle_signals(stop: asyncio.Event, server: HttpServer, service: Service) -> None:
    loop = asyncio.get_running_loop()

    def ending(number: signal.Signals) -> None:
        if stop.is_set():
            # End as if the signal had not been handled.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.set()

    def reloading() -> None:
        if service.reload is None:
            return
        try:
            server.reload(reloaded_http(service.settings.http, service.reload().http))
        except StrandlineError as error:
            _LOG.error("settings not reloaded; the previous ones remain in use", reason=str(error))
        else:
            _LOG.info("settings reloaded: tokens and certificate")

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, ending, number)
    loop.add_signal_handler(signal.SIGHUP, reloading)
