"""The HTTP server of a node and of a gateway: routes behind TLS, tokens and limits.

Handlers get only requests that are allowed. When the client closes the connection, its handler is cancelled. Everything
that a client can send or hold is limited: connections, head and body with their time and rate, and the memory of
answers.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from typing import Protocol

import structlog

from strandline.clock import Clock, SystemClock
from strandline.errors import StrandlineError
from strandline.node.http.auth import Tokens
from strandline.node.http.connection import Connection, ConnectionContext
from strandline.node.http.connection_limits import ConnectionLimits, OpenConnections
from strandline.node.http.errors import Refused, fault_of, unexpected
from strandline.node.http.handshakes import TlsListener
from strandline.node.http.listening import (
    BACKLOG,
    BoundAddress,
    address_of,
    allow_files,
    bound_socket,
    load_certificate,
    tls_context,
)
from strandline.node.http.origins import check_origin
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Heads
from strandline.node.http.routes import Access, Route, Router
from strandline.node.masking import SecretMask
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.query.queries import NARROW_OR_RAISE_TIMEOUT, NARROW_THE_QUERY, QueryTimedOut
from strandline.node.settings.fields import is_loopback, split_listen_address
from strandline.node.settings.http_sections import HttpSettings

log = structlog.get_logger(__name__)
# Checking the level of this logger is faster than a structlog call that drops the line.
_ACCESS = logging.getLogger(__name__)

_MAX_ANSWERS = 256 << 20
_STOP_POLL_S = 0.02


class RequestObserver(Protocol):
    """Counts requests. `handler` is the path of the route; None without a route."""

    def began(self) -> None: ...

    def ended(self, handler: str | None, code: int, seconds: float) -> None: ...

    def cut_off(self, reason: str) -> None: ...


class HttpServer:
    """Serves one address. For one event loop; `reload` is thread-safe."""

    def __init__(
        self,
        routes: Sequence[Route],
        settings: HttpSettings,
        address: str,
        *,
        max_body: int,
        mask: SecretMask | None = None,
        observer: RequestObserver | None = None,
        clock: Clock | None = None,
        memory: AnswerMemory | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        """`memory` is the memory of answers. `limits` default to those of the settings."""
        self._address = address
        self._listening_host, _ = split_listen_address(address)
        self._is_loopback = is_loopback(address)
        self._router, self._tokens = Router(routes), Tokens(settings)
        self._tls_context: ssl.SSLContext | None = tls_context(settings)
        self._mask, self._observer, self._clock = mask or SecretMask(), observer, clock or SystemClock()
        self._max_body = max_body
        self._connections = OpenConnections(limits or limits_of(settings))
        self._memory = memory or AnswerMemory(_MAX_ANSWERS)
        self._server: asyncio.Server | TlsListener | None = None

    async def start(self, listener: socket.socket | None = None) -> BoundAddress:
        """Listen, on `listener` or on a new socket. Raises `CannotListen`."""
        listener = bound_socket(self._address) if listener is None else listener
        allow_files(self._connections.limits.connections)
        connection_context = ConnectionContext(
            self._respond,
            self._ended,
            self._cut_off,
            self._connections,
            self._memory,
            self._max_body,
            self._clock,
            Heads(),
        )
        bound = address_of(listener, tls=self._tls_context is not None)
        try:
            if self._tls_context is not None:
                listener.setblocking(False)
                self._server = TlsListener(listener, self._tls_context, lambda: Connection(connection_context))
            else:
                self._server = await asyncio.get_running_loop().create_server(
                    lambda: Connection(connection_context),
                    sock=listener,
                    # More than asyncio's default of 100: connections wait here while a front restarts.
                    backlog=BACKLOG,
                )
        except BaseException:
            listener.close()
            raise
        log.info("listening", url=bound.url)
        return bound

    async def stop(self, grace_s: float) -> None:
        """Accept no more requests, wait `grace_s` for the current ones, and close the remaining connections.
        Idempotent.
        """
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections.all():
            connection.stop()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        while any(connection.is_busy for connection in self._connections.all()) and loop.time() < deadline:
            await asyncio.sleep(_STOP_POLL_S)
        for connection in self._connections.all():
            connection.abort()
        # Wait until the handlers of closed connections are cancelled.
        while len(self._connections) and loop.time() < deadline + 1:
            await asyncio.sleep(_STOP_POLL_S)
        self._connections.stop()

    def replace_routes(self, routes: Sequence[Route]) -> None:
        """Use these routes for requests from now on."""
        self._router = Router(routes)

    def reload(self, settings: HttpSettings) -> None:
        """Use the tokens and the certificate of these settings from now on. Address and limits do not change.

        Raises `CannotListen` for a certificate that can't be used. Then nothing has changed.
        """
        if self._tls_context is not None:
            load_certificate(self._tls_context, settings)
        self._tokens.replace(settings)

    async def _respond(self, request: Request, over_limit: bool) -> AnyResponse:
        """Answer any request."""
        if self._observer is not None:
            self._observer.began()
        try:
            route = self._router.find(request)
            if over_limit and route.access is not Access.OPEN:
                raise Refused(
                    503,
                    "unavailable",
                    f"there are more connections than the {self._connections.limits.connections} of http.connections",
                    remedy="Try again later",
                    headers=(("Retry-After", "1"),),
                )
            self._check(request, route)
            response = await route.handler(request)
            if request.deadline is not None and asyncio.get_running_loop().time() > request.deadline:
                raise QueryTimedOut("the answer was not complete within the query's timeout", remedy=NARROW_THE_QUERY)
            return response
        except StrandlineError as error:
            fault = fault_of(_with_client_remedy(error, request))
            if fault.status >= 500:
                reason = self._mask.text(fault.text)
                log.warning("request failed", method=request.method, path=request.path, reason=reason)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - the client gets an answer, and the log the details
            fault = unexpected(error, method=request.method, path=request.path)
        return fault.masked(self._mask).response()

    def _check(self, request: Request, route: Route) -> None:
        """Raises `Refused` if the request is not allowed."""
        access = route.access
        has_token = not self._is_loopback or self._tokens.requires_token(access)
        try:
            check_origin(request.method, request.headers, self._listening_host, has_token=has_token)
            self._tokens.check(request.path, request.headers, access)
            length = request.content_length
            if length is not None and length > self._max_body:
                text = f"the body has {length} bytes, and at most {self._max_body} are accepted"
                raise Refused(413, "too_large", text)
        except Refused as refused:
            log.info("request refused", path=request.path, remote=request.remote, reason=refused.message)
            raise

    def _cut_off(self, reason: str) -> None:
        if self._observer is not None:
            self._observer.cut_off(reason)

    def _ended(self, request: Request, status: int, sent: int) -> None:
        seconds = self._clock.monotonic() - request.began_at
        if self._observer is not None:
            self._observer.ended(request.route_path, status, seconds)
        if not _ACCESS.isEnabledFor(logging.DEBUG):
            return
        # Without the query, which may have private data.
        log.debug(
            "request",
            method=request.method,
            path=request.path,
            status=status,
            bytes=sent,
            ms=round(seconds * 1000, 1),
            remote=request.remote,
        )


def _with_client_remedy(error: StrandlineError, request: Request) -> StrandlineError:
    """The error. If the client has set the timeout, the remedy names it."""
    if isinstance(error, QueryTimedOut) and request.has_client_timeout:
        return QueryTimedOut(error.message, remedy=NARROW_OR_RAISE_TIMEOUT)
    return error


def limits_of(settings: HttpSettings) -> ConnectionLimits:
    """The limits of the settings."""
    return ConnectionLimits(settings.connections, settings.request_timeout.seconds, settings.min_rate.bytes)
