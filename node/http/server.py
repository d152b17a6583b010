"""The server: routes in one place, behind TLS, tokens and limits.

A handler sees only requests that may be made. When the client goes away its handler is cancelled. Everything that a
client can send is bounded: the number of connections, the size of the head and of the body, and the time that either
may take.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from strandline.clock import Clock, SystemClock
from strandline.node.http.auth import Tokens
from strandline.node.http.connections import Connection, ConnectionLimits, begun_abandoned
from strandline.node.http.errors import Refused, SlowRequest, errors_answered
from strandline.node.http.express import Express
from strandline.node.http.listening import BoundAddress, address_of, bound_socket, load_certificate, tls_context
from strandline.node.http.marks import ANSWER_BEGUN
from strandline.node.http.origins import check_origin
from strandline.node.http.quick_side import Counts, QuickSide
from strandline.node.http.routes import Access, Handler, Route
from strandline.node.http.whole import HEADERS
from strandline.node.http.whole_requests import WholeRequest
from strandline.node.masking import SecretMask
from strandline.node.settings.fields import is_loopback, split_listen_address
from strandline.node.settings.http_sections import HttpSettings

log = structlog.get_logger(__name__)

_HANDSHAKE_S = 10.0


class HttpServer:
    """Answers at one address. Its methods belong to one event loop; `reload` may be called by any thread."""

    def __init__(
        self,
        routes: Sequence[Route],
        settings: HttpSettings,
        address: str,
        *,
        max_body: int,
        mask: SecretMask | None = None,
        request_timeout_s: float | None = None,
        middlewares: Sequence[Middleware] = (),
        counts: Counts | None = None,
        clock: Clock | None = None,
        express: Express | None = None,
    ) -> None:
        """`middlewares` see each request first and its answer last, errors as they are answered; `counts` is told of
        requests that are answered without them, but for those that `express` answers.
        """
        self._address = address
        self._listening_host, _ = split_listen_address(address)
        self._is_loopback = is_loopback(address)
        self._timeout_s = settings.request_timeout.seconds if request_timeout_s is None else request_timeout_s
        self._connections = settings.connections
        self._tokens = Tokens(settings)
        self._context: ssl.SSLContext | None = tls_context(settings)
        self._max_body = max_body
        self._app = web.Application(
            client_max_size=max_body,
            middlewares=[*middlewares, begun_abandoned, errors_answered(mask or SecretMask()), self._body_bounded()],
        )
        self._app.on_response_prepare.append(_prepared)
        for route in routes:
            self._add(route)
        self._quick = QuickSide(
            routes, self._check_whole, clock or SystemClock(), counts, express=express, clearance=self._clearance
        )
        self._runner = web.AppRunner(self._app, handler_cancellation=True)
        self._server: asyncio.Server | None = None
        self._stopping = asyncio.Lock()

    async def start(self, listener: socket.socket | None = None) -> BoundAddress:
        """Listen, or serve a socket that listens already. Raises `CannotListen`."""
        listener = listener or bound_socket(self._address)
        try:
            await self._runner.setup()
            bound = address_of(listener, tls=self._context is not None)
            self._server = await self._serve(listener)
        except BaseException:
            listener.close()
            raise
        log.info("listening", url=bound.url)
        return bound

    async def stop(self, grace_s: float) -> None:
        """Take no more connections, let requests end for so long, and cancel those that have not. It may be called
        again, also meanwhile.
        """
        if self._server is not None:
            self._server.close()
        async with self._stopping:
            if self._runner.server is not None:
                self._runner.server.pre_shutdown()
                # It waits twice: for handlers, and for their tasks. For ever, if it is told not to wait at all.
                await self._runner.server.shutdown(max(grace_s / 2, 0.001))
                await self._runner.cleanup()

    def reload(self, settings: HttpSettings) -> None:
        """Hold requests from now on to these tokens, and show this certificate. The address and the limits stay.

        Raises `CannotListen` for a certificate that can't be used; the one before stays then, and so do the tokens.
        """
        if self._context is not None:
            load_certificate(self._context, settings)
        self._tokens.replace(settings)

    async def _serve(self, listener: socket.socket) -> asyncio.Server:
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner has not been set up")
        limits = ConnectionLimits(self._connections, self._timeout_s)
        loop = asyncio.get_running_loop()
        if self._context is None:
            return await loop.create_server(lambda: Connection(server, limits, self._quick), sock=listener)
        return await loop.create_server(
            lambda: Connection(server, limits, self._quick),
            sock=listener,
            ssl=self._context,
            ssl_handshake_timeout=min(self._timeout_s, _HANDSHAKE_S),
        )

    def _add(self, route: Route) -> None:
        handler = self._guarded(route)
        methods = (*route.methods, "HEAD") if "GET" in route.methods and "HEAD" not in route.methods else route.methods
        resource = self._app.router.add_resource(route.path)
        for method in methods:
            resource.add_route(method, handler)

    def _check(self, request: web.Request | WholeRequest, route: Route) -> None:
        """Raises `Refused` if the request may not be made."""
        headers, access = request.headers, route.access
        is_guarded = not self._is_loopback or self._tokens.guards(access)
        check_origin(request.method, headers, self._listening_host, guarded=is_guarded)
        self._tokens.check(request.path, headers, access)

    def _check_whole(self, request: WholeRequest, route: Route) -> None:
        """The same for a request whose header fields may have been looked at before."""
        clearance = self._clearance(route.access, request.method)
        if request.headers.cleared_for != clearance:
            self._check(request, route)
            request.headers.cleared_for = clearance

    def _clearance(self, access: Access = Access.READ, method: str = "GET") -> object:
        """What header fields are marked with whose sender may do this, until there are other tokens."""
        return access, method, self._tokens.version

    def _guarded(self, route: Route) -> Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                self._check(request, route)
            except Refused as refused:
                log.info("request refused", path=request.path, remote=request.remote, reason=refused.message)
                raise
            return await route.handler(request)

        return guarded

    def _body_bounded(self) -> Middleware:
        """The middleware that refuses a body that is too large, or comes too slowly."""

        @web.middleware
        async def bounded(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            length = request.content_length
            if length is not None and length > self._max_body:
                raise Refused(413, "too_large", f"the body has {length} bytes, and at most {self._max_body} are taken")
            if request.content.is_eof():
                return await handler(request)

            def expire() -> None:
                if not request.content.is_eof():
                    request.content.set_exception(SlowRequest(self._timeout_s))

            expiry = asyncio.get_running_loop().call_later(self._timeout_s, expire)
            try:
                return await handler(request)
            finally:
                expiry.cancel()

        return bounded


async def _prepared(request: web.Request, response: web.StreamResponse) -> None:
    request[ANSWER_BEGUN] = True
    for name, value in HEADERS.items():
        if name == "Server" or name not in response.headers:
            response.headers[name] = value
