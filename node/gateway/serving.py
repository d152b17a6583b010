"""The gateway's life: it listens, serves until it is told to stop, finishes what it has begun, and ends."""

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

    `on_listening` is called once requests are answered. `reload` reads the settings anew for SIGHUP: tokens and the
    certificate are taken from them. `environ` says whether systemd listens. `status_file` None for none.
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
    """Settings that must not be followed while the gateway runs."""


async def serve(gateway: Gateway, service: Service) -> None:
    """Serve until SIGTERM or SIGINT; then take no more requests, finish those that are there within
    `gateway.timeout`, and return. A second signal ends the process at once.
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
    """Serve; meanwhile tell whoever watches how it is."""
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
    """The tokens and the certificate that were read, at the address that is still listened on. Raises `UnsafeReload`
    where that would stand open.
    """
    taken = running.model_copy(update={name: getattr(read, name) for name in _RELOADED})
    if next(taken.findings(), None) is not None:
        raise UnsafeReload(
            f"the new tokens and certificate don't fit {running.gateway_address}, which is listened on until a restart",
            remedy="Restart the gateway to have it listen on the new address, or give the tokens that this one needs",
        )
    return taken


def _handle_signals(stop: asyncio.Event, server: HttpServer, service: Service) -> None:
    loop = asyncio.get_running_loop()

    def ending(number: signal.Signals) -> None:
        if stop.is_set():
            # As though nobody had listened to it.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.set()

    def reloading() -> None:
        if service.reload is None:
            return
        try:
            server.reload(reloaded_http(service.settings.http, service.reload().http))
        except StrandlineError as error:
            _LOG.error("the settings are not loaded anew, and what held before goes on", reason=str(error))
        else:
            _LOG.info("settings loaded anew: tokens and certificate")

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, ending, number)
    loop.add_signal_handler(signal.SIGHUP, reloading)
