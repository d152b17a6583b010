"""One connection of a client: how many there may be, what it may send, and how what is no HTTP is answered.

Requests that have a quick side are answered there, between those that aiohttp answers on the same connection.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.web_exceptions import HTTPException

from strandline.node.http.errors import Fault, unexpected
from strandline.node.http.quick_handlers import UnderWay
from strandline.node.http.quick_side import Begun, QuickSide
from strandline.node.http.turns import Turn
from strandline.node.http.whole import HEADERS, Whole
from strandline.node.http.whole_requests import Headers, RequestReader, WholeRequest

log = structlog.get_logger(__name__)
# To ask it for its level takes less than to let it drop a line.
_ACCESS = logging.getLogger(__name__)

# A long selector in a URL is normal; whoever has a longer one posts it.
_LONGEST_LINE = 32 << 10
_LONGEST_HEADER = 16 << 10
_MOST_HEADERS = 100
# How long the rest of a body is read that nobody wants: a client that is cut off while it sends sees no answer.
_LINGER_S = 5.0
# How long a client may take nothing of an answer.
_TAKEN_WITHIN_S = 60.0
# In bytes, of what is sent behind a request before it is answered.
_MOST_BEHIND = 64 << 10

_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nServer: strandline\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n"
    b"Content-Length: 40\r\nConnection: close\r\n\r\nthere are too many connections already.\n"
)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections at a time, and how long one may be idle, or take to send the head of a request."""

    connections: int
    timeout_s: float


class _QuickTurn(Turn):
    """At the quick side."""

    __slots__ = ("_quick", "begun", "under_way")

    def __init__(self, data: bytes, begun: Begun, under_way: UnderWay, quick: QuickSide) -> None:
        super().__init__(data)
        self.begun, self.under_way, self._quick = begun, under_way, quick

    def abandon(self) -> None:
        self.under_way.abandon()
        self._quick.passed_on()


class Connection(web.RequestHandler):
    """aiohttp's, with a limit on their number, a quick side, and without a word about what it is made of."""

    __slots__ = ("_closes", "_handed_over", "_is_plain", "_most", "_quick", "_reader", "_taking", "_turn", "_turn_over")

    def __init__(self, server: web.Server, limits: ConnectionLimits, quick: QuickSide) -> None:
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
        self._most, self._quick = limits.connections, quick
        # Until now every request came whole, so that aiohttp has no half of one.
        self._is_plain, self._reader = True, RequestReader()
        self._turn: Turn | None = None
        self._turn_over: asyncio.Future[None] | None = None
        self._handed_over: Begun | None = None
        self._closes = False
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        manager = self._manager
        if manager is not None and len(manager.connections) > self._most:
            log.warning("connection refused: there are too many", most=self._most)
            if isinstance(transport, asyncio.WriteTransport):
                transport.write(_TOO_MANY)
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_watch()
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.abandon()
            self._end_turn()
        self.abandon_handed_over()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        turn = self._turn
        if turn is not None:
            # Requests may be sent before others are answered, though hardly any client does. Whoever reads no longer
            # does not see a client go away, so that it takes much to do so.
            turn.behind += data
            if len(turn.behind) > _MOST_BEHIND and self.transport is not None:
                self.transport.pause_reading()
            return
        express = self._quick.express
        if express is not None and self._is_plain and self._is_idle():
            self._turn = begun = express.begin(data, self)
            if begun is not None:
                begun.linger()
                return
        self._ordinarily(data)

    def _ordinarily(self, data: bytes) -> None:
        if self._is_plain:
            request = self._reader.read(data)
            self._is_plain = request is not None
            if request is not None and self._is_idle() and self._takes_turn(request, data):
                return
        super().data_received(data)

    def cleared_fields(self, data: bytes, line_end: int) -> Headers | None:
        """As `ExpressClient` has it."""
        reader = self._reader
        if data[line_end:] != reader.written or reader.headers.cleared_for != self._quick.clearance():
            return None
        return reader.headers

    def express_answered(self, whole: Whole, seconds: float) -> None:
        """As `ExpressClient` has it."""
        turn, self._turn = self._turn, None
        if turn is not None:
            self._write(whole)
            if _ACCESS.isEnabledFor(logging.DEBUG):
                self._log_answer("GET", turn.data[4:].split(b"?")[0].decode("latin-1"), whole, seconds)
            self._go_on(turn)

    def express_declined(self) -> None:
        """As `ExpressClient` has it."""
        turn, self._turn = self._turn, None
        if turn is not None:
            self._ordinarily(turn.data)
            self._go_on(turn)

    @property
    def handed_over(self) -> Begun | None:
        """What the quick side has begun and could not end, for the request that is being handled."""
        return self._handed_over

    def abandon_handed_over(self) -> None:
        """The request was handled: nobody wants any more what the quick side has begun."""
        begun, self._handed_over = self._handed_over, None
        if begun is not None and not isinstance(begun.answer, Whole):
            begun.answer.abandon()

    def close(self) -> None:
        """As aiohttp has it: what is under way is answered before."""
        if self._turn is not None:
            self._closes = True
        else:
            super().close()

    async def shutdown(self, timeout: float | None = 15.0) -> None:
        """The same, and wait for it."""
        if self._turn is not None:
            began = self._loop.time()
            self._turn_over = self._loop.create_future()
            await asyncio.wait([self._turn_over], timeout=timeout)
            # Whatever was handed over then is under way for aiohttp two turns of the loop later.
            for _ in range(3):
                await asyncio.sleep(0)
            # For ever, if it is told not to wait at all.
            timeout = None if timeout is None else max(0.001, timeout - (self._loop.time() - began))
        await super().shutdown(timeout)

    def _is_idle(self) -> bool:
        """Whether aiohttp waits for a request, and the client has taken all that was sent."""
        waiter, transport = self._waiter, self.transport
        return (
            waiter is not None
            and not waiter.done()
            and not self._messages
            and not self._upgraded
            and transport is not None
            and not (self._close or self._force_close)
            and transport.get_write_buffer_size() == 0
        )

    def _takes_turn(self, request: WholeRequest, data: bytes) -> bool:
        begun = self._quick.begin(request)
        if begun is None:
            return False
        if isinstance(begun.answer, Whole):
            self._reply(begun, begun.answer)
        else:
            self._turn = _QuickTurn(data, begun, begun.answer, self._quick)
            begun.answer.when_here(self._arrived)
        return True

    def _arrived(self) -> None:
        turn = self._turn
        if not isinstance(turn, _QuickTurn):
            return
        self._turn = None
        whole = turn.under_way.take()
        if whole is not None:
            self._reply(turn.begun, whole)
        else:
            self._quick.passed_on()
            self._handed_over = turn.begun
            super().data_received(turn.data)
        self._go_on(turn)

    def _go_on(self, turn: Turn) -> None:
        """A turn is over. The same request may have begun another one."""
        if self._turn is not None:
            self._turn.behind += turn.behind
            return
        if self._closes or self._turn_over is not None:
            self._end_turn()
        if turn.behind and self.transport is not None:
            self.transport.resume_reading()
            self.data_received(turn.behind)

    def _end_turn(self) -> None:
        if self._closes:
            super().close()
        if self._turn_over is not None and not self._turn_over.done():
            self._turn_over.set_result(None)

    def _reply(self, begun: Begun, whole: Whole) -> None:
        if self.transport is None:
            self._quick.passed_on()
            return
        self._write(whole)
        seconds = self._quick.answered(begun)
        if _ACCESS.isEnabledFor(logging.DEBUG):
            self._log_answer(begun.request.method, begun.request.path, whole, seconds)

    def _write(self, whole: Whole) -> None:
        if self.transport is not None:
            self.transport.write(self._quick.raw(whole))
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout

    def _log_answer(self, method: str, path: str, whole: Whole, seconds: float) -> None:
        log.debug(
            "request",
            method=method,
            path=path,
            status=200,
            bytes=len(whole.body),
            ms=round(seconds * 1000, 1),
            remote=self.peername[0] if isinstance(self.peername, tuple) else self.peername,
        )

    def pause_writing(self) -> None:
        """So much waits to be taken by the client that nobody should write more."""
        super().pause_writing()
        self._watch_taking(self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        # One that is closed, and waits only for the rest to be taken, stays watched.
        if self.transport is not None:
            self._end_watch()

    def force_close(self) -> None:
        """Close the connection once all is taken that was written; but not for ever. TLS has a limit of its own."""
        transport = self.transport
        super().force_close()
        self._watch_taking(transport)

    def _watch_taking(self, transport: asyncio.WriteTransport | None) -> None:
        """See to it that the client goes on taking what was written."""
        if transport is not None and self._taking is None and (left := _left_to_take(transport)):
            self._taking = self._loop.call_later(_TAKEN_WITHIN_S, self._look_at_taking, transport, left)

    def _end_watch(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _look_at_taking(self, transport: asyncio.WriteTransport, before: int) -> None:
        self._taking = None
        if _left_to_take(transport) < before:
            self._watch_taking(transport)
            return
        log.info("a client that takes nothing of its answer is cut off", after_s=_TAKEN_WITHIN_S)
        transport.abort()

    def _process_keepalive(self) -> None:
        if self._turn is not None:
            # aiohttp knows of no request.
            self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        super()._process_keepalive()

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


def _left_to_take(transport: asyncio.WriteTransport) -> int:
    """How many bytes the client has not taken; 0 if nobody can tell any more."""
    try:
        return transport.get_write_buffer_size()
    except AttributeError:
        # So asyncio answers for TLS that was closed twice: by a client that has gone, and by a server that stops.
        return 0


class AccessLog(AbstractAccessLogger):
    """One line for each request, at debug, without its query: that may hold what is nobody's business."""

    @property
    def enabled(self) -> bool:
        """Asked once for each connection."""
        return True

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        length = 0 if isinstance(response, HTTPException) else response.body_length
        log.debug(
            "request",
            method=request.method,
            path=request.path,
            status=response.status,
            bytes=length,
            ms=round(time * 1000, 1),
            remote=request.remote,
        )


def begun_of(request: web.BaseRequest) -> Begun | None:
    """What the quick side has begun for a request that it has handed over."""
    connection = request.protocol
    return connection.handed_over if isinstance(connection, Connection) else None


@web.middleware
async def begun_abandoned(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """The middleware that gives up what the quick side has begun and no handler has ended."""
    try:
        return await handler(request)
    finally:
        if isinstance(request.protocol, Connection):
            request.protocol.abandon_handed_over()
