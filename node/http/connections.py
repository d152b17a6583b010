"""One connection of a client: how many there may be, what it may send, and how what is no HTTP is answered."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.web_exceptions import HTTPException

from strandline.node.http.errors import Fault, unexpected

log = structlog.get_logger(__name__)

# A long selector in a URL is normal; whoever has a longer one posts it.
_LONGEST_LINE = 32 << 10
_LONGEST_HEADER = 16 << 10
_MOST_HEADERS = 100
# How long the rest of a body is read that nobody wants: a client that is cut off while it sends sees no answer.
_LINGER_S = 5.0

HEADERS: Mapping[str, str] = {
    "Server": "strandline",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nServer: strandline\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 40\r\nConnection: close\r\n\r\nthere are too many connections already.\n"
)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections at a time, and how long one may be idle, or take to send the head of a request."""

    connections: int
    timeout_s: float


class Connection(web.RequestHandler):
    """aiohttp's, with a limit on their number and without a word about what it is made of."""

    __slots__ = ("_most",)

    def __init__(self, server: web.Server, limits: ConnectionLimits) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log_class=AccessLog,
            keepalive_timeout=limits.timeout_s,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_HEADER,
            max_headers=_MOST_HEADERS,
            lingering_time=min(_LINGER_S, limits.timeout_s),
            # A body comes to its handler as it was sent: what may be unpacked, and how far, is decided there.
            auto_decompress=False,
        )
        self._most = limits.connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        manager = self._manager
        if manager is not None and len(manager.connections) > self._most:
            log.warning("connection refused: there are too many", most=self._most)
            if isinstance(transport, asyncio.WriteTransport):
                transport.write(_TOO_MANY)
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What came before any handler: a request that is no HTTP. Or what came behind it: an answer that broke off."""
        if request.writer.output_size > 0:
            raise ConnectionAbortedError("the answer broke off")
        if status < 500:
            # The text quotes what was sent, which may be a header with a secret; so it is for the sender alone.
            log.debug("request can't be read", remote=request.remote, status=status)
            fault = Fault(status, "bad_data", f"the request can't be read: {(message or '').strip()[:200]}")
        else:
            fault = unexpected(exc or RuntimeError(message or ""))
        response = fault.response()
        response.headers.update(HEADERS)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """What aiohttp found strange, which is mostly a client that went away. Not an error of ours."""
        log.debug("connection ended in an error", said=str(args[0]) if args else "", exc_info=kw.get("exc_info"))


class AccessLog(AbstractAccessLogger):
    """One line for each request, at debug, without its query: that may hold what is nobody's business."""

    @property
    def enabled(self) -> bool:
        """Asked once for each connection."""
        return True

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        log.debug(
            "request",
            method=request.method,
            path=request.path,
            status=response.status,
            bytes=0 if isinstance(response, HTTPException) else response.body_length,
            ms=round(time * 1000, 1),
            remote=request.remote,
        )
