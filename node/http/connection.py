"""One connection of a client. httptools parses its requests, which are answered one after the other."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import structlog
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

from strandline.clock import Clock
from strandline.node.http.answer_writer import AnswerWriter
from strandline.node.http.connection_limits import Awaited, OpenConnections, Waiting
from strandline.node.http.errors import (
    CLIENT_CLOSED_REQUEST,
    QUERY_TIMED_OUT,
    Fault,
    Refused,
    SlowRequest,
    fault_of,
    unexpected,
)
from strandline.node.http.headers import Headers
from strandline.node.http.rate_watch import RateWatch
from strandline.node.http.requests import MAX_BUFFERED, Body, Request
from strandline.node.http.responses import AnyResponse, Heads
from strandline.node.query.answer_memory import AnswerMemory

log = structlog.get_logger(__name__)

# Bytes. A longer selector has to be posted.
MAX_TARGET = 32 << 10
MAX_HEAD = 64 << 10
MAX_FIELDS = 100
# Pipelined requests that wait for an answer. At this number, reading pauses.
_MAX_QUEUED = 16
# How long the rest of an unread body is read and dropped, or a closed connection flushed: a client whose connection is
# closed while it sends does not see the answer.
_DRAIN_TIMEOUT_S = 5.0
SLOW_READER, TIMED_OUT = "slow-reader", "timed-out"
"""Why a connection was closed during an answer."""


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """What the connections of a server share. `respond` answers any request; its flag is whether the connection is over
    the limit. `on_end` is called for each request that has ended, with the status and the bytes of its answer, and
    `on_cut_off` for each answer that was cut off, with the reason.
    """

    respond: Callable[[Request, bool], Awaitable[AnyResponse]]
    on_end: Callable[[Request, int, int], None]
    on_cut_off: Callable[[str], None]
    connections: OpenConnections
    memory: AnswerMemory
    max_body: int
    clock: Clock
    heads: Heads


class Connection(asyncio.Protocol):
    """An asyncio protocol. httptools calls the `on_` methods."""

    _transport: asyncio.Transport
    _writer: AnswerWriter

    def __init__(self, context: ConnectionContext) -> None:
        self._context, self._limits = context, context.connections.limits
        self._loop = asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        self._remote, self._is_over_limit = "", False
        # The head of the request that is being read.
        self._target: list[bytes] = []
        self._fields: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._head_started_at: float | None = None
        # The last request, the one whose body is being read, the one being answered, and those that wait.
        self._last: Request | None = None
        self._incoming: Request | None = None
        self._answering: Request | None = None
        self._is_overdue = False
        self._queued: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._idle_since = self._deadline = self._loop.time()
        # Stopping: no more requests are accepted. Closing: only waiting for the end.
        self._is_stopping = self._is_closing = False
        self._reading_paused = self._has_continued = False
        self._receiving = RateWatch(self._limits.min_rate, self._limits.rate_window_s)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have this interface, but do not inherit from it.
        self._transport = cast("asyncio.Transport", transport)
        watch = RateWatch(self._limits.min_rate, self._limits.rate_window_s)
        self._writer = AnswerWriter(self._transport, self._context.heads, self._context.clock, watch)
        self._writer.begin()
        peer = transport.get_extra_info("peername")
        self._remote = str(peer[0]) if isinstance(peer, tuple) else ""
        now = self._loop.time()
        self._is_over_limit = not self._context.connections.admit(self)
        self._deadline = (
            self._context.connections.over_limit_deadline(now)
            if self._is_over_limit
            else now + self._limits.request_timeout_s
        )

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_closing = True
        self._context.connections.forget(self)
        self._writer.resume()
        self._queued.clear()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._is_closing or self._is_stopping:
            return
        if self._incoming is None:
            self._head_bytes += len(data)
            if self._head_started_at is None:
                self._head_started_at = self._loop.time()
                if not self._is_over_limit:
                    self._deadline = self._head_started_at + self._limits.request_timeout_s
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            # The request is answered as HTTP/1.1. The bytes after it may be of another protocol.
            self._is_stopping = True
            if self._last is not None:
                self._last.keep_alive = False
        except HttpParserError as error:
            self._on_parse_error(error)
        else:
            if self._incoming is None and self._head_started_at is not None and self._head_bytes > MAX_HEAD:
                self._refuse(Fault(431, "bad_data", f"the request's head is longer than {MAX_HEAD} bytes"))

    def pause_writing(self) -> None:
        self._writer.pause(self._loop.time())

    def resume_writing(self) -> None:
        self._writer.resume()

    def on_message_begin(self) -> None:
        self._target.clear()
        self._fields.clear()

    def on_url(self, part: bytes) -> None:
        self._target.append(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))
        if len(self._fields) > MAX_FIELDS:
            raise Refused(431, "bad_data", f"the request has more than {MAX_FIELDS} header fields")

    def on_headers_complete(self) -> None:
        headers, is_http_1_0 = Headers.of(self._fields), self._parser.get_http_version() == "1.0"
        host = headers.get("host", "")
        if (not host and not is_http_1_0) or "," in host:
            raise Refused(400, "bad_data", "the request has no Host field, or more than one")
        now = self._loop.time()
        request = Request(
            self._parser.get_method().decode("ascii"),
            _target(b"".join(self._target)),
            headers,
            Body(self._context.max_body, self._wants_body),
            self._context.memory.lease(),
            remote=self._remote,
            keep_alive=self._parser.should_keep_alive() and not is_http_1_0,
            is_http_1_0=is_http_1_0,
            began_at=self._context.clock.monotonic(),
            arrived_at=now,
        )
        self._last = self._incoming = request
        self._has_continued = False
        self._receiving.start(now, 0)
        if self._task is None:
            self._start(request)
        else:
            self._queued.append(request)
            if len(self._queued) >= _MAX_QUEUED:
                self._pause_reading()

    def on_body(self, chunk: bytes) -> None:
        if self._incoming is not None:
            self._incoming.body.feed(chunk)
            if self._incoming.body.buffered > MAX_BUFFERED:
                self._pause_reading()

    def on_message_complete(self) -> None:
        if self._incoming is not None:
            self._incoming.body.complete()
        self._incoming, self._head_started_at, self._head_bytes = None, None, 0

    @property
    def waiting(self) -> Waiting | None:
        if self._task is not None or self._incoming is not None or self._is_closing:
            return None
        if self._head_started_at is not None:
            return Waiting(Awaited.REST_OF_HEAD, self._head_started_at)
        return Waiting(Awaited.NEXT_REQUEST if self._last is not None else Awaited.FIRST_BYTE, self._idle_since)

    @property
    def is_waiting_for_first_request(self) -> bool:
        return self._last is None

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, or an answer is not sent completely."""
        return self._task is not None or not self._writer.is_drained

    def check_limits(self, now: float) -> None:
        if self._writer.is_too_slow(now):
            log.info("slow reader cut off", remote=self._remote, min_rate=self._limits.min_rate)
            self._context.on_cut_off(SLOW_READER)
            self.abort()
        elif self._writer.is_sending and self._is_past_deadline(now):
            path = self._answering.path if self._answering is not None else ""
            log.info("answer cut off at the query's time limit", remote=self._remote, path=path)
            self._is_overdue = True
            self._context.on_cut_off(TIMED_OUT)
            self.abort()
        elif self._incoming is not None and not self._is_closing:
            self._check_body_rate(self._incoming.body, now)
        elif self._task is None and self._writer.is_drained and now > self._deadline:
            if self._is_closing:
                self.abort()
            elif self._head_started_at is None:
                self.close()
            else:
                self._refuse(fault_of(SlowRequest(self._limits.request_timeout_s)))

    def _is_past_deadline(self, now: float) -> bool:
        request = self._answering
        return request is not None and request.deadline is not None and now > request.deadline

    def _check_body_rate(self, body: Body, now: float) -> None:
        if self._reading_paused or not body.is_awaited:
            # The server has paused reading, so the client is not slow.
            self._receiving.start(now, body.received)
            self._deadline = now + self._limits.request_timeout_s
        elif self._receiving.is_too_slow(now, body.received):
            body.expire(self._limits.rate_window_s)
        elif now > self._deadline:
            body.expire(self._limits.request_timeout_s)

    def stop(self) -> None:
        """Accept no more requests. The current one is still answered."""
        self._is_stopping = True
        self._queued.clear()
        if self._task is None:
            self.close()

    def close(self) -> None:
        """Close the connection after sending what was written."""
        self._is_closing = True
        self._deadline = self._loop.time() + _DRAIN_TIMEOUT_S
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_closing = True
        self._transport.abort()

    def _start(self, request: Request) -> None:
        self._task = self._loop.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        status, sent, closes = CLIENT_CLOSED_REQUEST, 0, True
        self._answering = request
        try:
            response = await self._context.respond(request, self._is_over_limit)
            # If a request is answered before its body is complete, the rest of the body is not read.
            closes = (
                response.close
                or not (request.keep_alive and request.body.is_complete)
                or self._is_over_limit
                or self._is_stopping
            )
            sent = await self._writer.send(request, response, closes=closes)
            status = response.status
        except ConnectionError:
            self.abort()
        except Exception as error:  # noqa: BLE001 - the client must not wait forever, and the log has the details
            unexpected(error, method=request.method, path=request.path)
            self.abort()
        finally:
            self._task = self._answering = None
            request.memory.release()
            self._context.on_end(request, QUERY_TIMED_OUT if self._is_overdue else status, sent)
        if not self._is_closing:
            self._after_answer(closes=closes, drains_body=not request.body.is_complete)

    def _after_answer(self, *, closes: bool, drains_body: bool) -> None:
        """Continue with the next request, or close the connection."""
        if not closes:
            if self._head_started_at is None:
                self._idle_since = self._loop.time()
                self._deadline = self._idle_since + self._limits.request_timeout_s
            if self._queued:
                self._start(self._queued.popleft())
            self._resume_reading()
        elif drains_body:
            # What the client still sends is read and dropped until it closes the connection.
            self._is_closing, self._incoming = True, None
            self._deadline = self._loop.time() + _DRAIN_TIMEOUT_S
            self._resume_reading()
            if self._transport.can_write_eof():
                self._transport.write_eof()
        else:
            self.close()

    def _on_parse_error(self, error: HttpParserError) -> None:
        cause = error.__context__
        if isinstance(cause, Refused):
            self._refuse(fault_of(cause))
        else:
            # The text may quote a header with a secret, so only the client gets it.
            log.debug("request cannot be parsed", remote=self._remote)
            self._refuse(Fault(400, "bad_data", f"the request cannot be parsed: {str(error)[:200]}"))

    def _refuse(self, fault: Fault) -> None:
        """Answer an invalid request, and close."""
        self._is_stopping = True
        if self._incoming is not None:
            self._incoming.body.fail(Refused(fault.status, fault.kind, fault.text))
        elif self._task is None:
            response = fault.response()
            framing = b"Connection: close\r\nContent-Length: %d\r\n" % len(response.body)
            head = self._context.heads.render(response, framing, self._context.clock.now_ms())
            self._writer.write(head + response.body)
            self._after_answer(closes=True, drains_body=True)

    def _wants_body(self) -> None:
        """The handler waits for more of the body."""
        incoming = self._incoming
        if incoming is not None and not self._has_continued and not incoming.body.received:
            self._has_continued = True
            if "100-continue" in incoming.headers.get("expect", "").lower():
                self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._resume_reading()

    def _pause_reading(self) -> None:
        if not self._reading_paused and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused and not self._transport.is_closing():
            self._reading_paused = False
            self._transport.resume_reading()


def _target(raw: bytes) -> str:
    """Path and query of a request target in any form."""
    if len(raw) > MAX_TARGET:
        raise Refused(414, "bad_data", f"the request's target is longer than {MAX_TARGET} bytes", remedy="Use POST")
    if not raw.isascii():
        raise Refused(400, "bad_data", "the request's target has bytes that are not ASCII", remedy="Escape them as %xx")
    if not raw.startswith(b"/"):
        url = parse_url(raw)
        raw = (url.path or b"/") + (b"?" + url.query if url.query else b"")
    return raw.decode("ascii")
