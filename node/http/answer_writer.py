"""Writes answers to a client, with back-pressure.

The transport's write limits are minimal, so that `pause` and `resume` show whether the kernel has accepted everything
that was written. Until it has, the next block of an answer is not made, and the memory of the answer is counted.
"""

import asyncio
from contextlib import aclosing

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.node.http.rate_watch import RateWatch
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Heads, Response, StreamedResponse

log = structlog.get_logger(__name__)

_WITHOUT_BODY = (204, 304)


class AnswerAbortedError(ConnectionError):
    """A part of the answer was sent, and the rest can't be made: the connection must be closed."""


class AnswerWriter:
    """Writes to one transport. For one event loop."""

    def __init__(self, transport: asyncio.Transport, heads: Heads, clock: Clock, watch: RateWatch) -> None:
        self._transport, self._heads, self._clock, self._watch = transport, heads, clock, watch
        self._drain: asyncio.Future[None] | None = None
        self._written = 0
        self.is_sending = False
        """Whether an answer is partly sent."""

    def begin(self) -> None:
        """Set the transport's write limits. This may call `pause` at once."""
        # Not zero: a TLS transport pauses when its buffer reaches the high limit, which would be always.
        self._transport.set_write_buffer_limits(high=1, low=0)

    @property
    def is_drained(self) -> bool:
        """Whether the kernel has accepted everything that was written."""
        return self._drain is None

    def is_too_slow(self, now: float) -> bool:
        """Whether the client reads more slowly than the minimum rate."""
        return self._drain is not None and self._watch.is_too_slow(now, self._accepted_bytes())

    def pause(self, now: float) -> None:
        """The transport has buffered a part of what was written."""
        if self._drain is None:
            self._drain = asyncio.get_running_loop().create_future()
            self._watch.start(now, self._accepted_bytes())

    def resume(self) -> None:
        """The transport's buffer is empty, or the connection is closed."""
        drain, self._drain = self._drain, None
        if drain is not None and not drain.done():
            drain.set_result(None)

    def write(self, data: bytes) -> None:
        """Write bytes, unless the transport is closing."""
        if not self._transport.is_closing():
            self._written += len(data)
            self._transport.write(data)

    async def send(self, request: Request, response: AnyResponse, *, closes: bool) -> int:
        """Send an answer, and return the size of its body. Returns when the kernel has accepted all of it. Raises
        `ConnectionError` if the client closes the connection, or if the rest of the answer can't be made.
        """
        framing = b"Connection: close\r\n" if closes else b""
        self.is_sending = True
        try:
            if isinstance(response, StreamedResponse):
                return await self._send_blocks(request, response, framing)
            return await self._send_response(request, response, framing)
        finally:
            self.is_sending = False

    async def _send_response(self, request: Request, response: Response, framing: bytes) -> int:
        body = response.body
        if response.status not in _WITHOUT_BODY:
            framing += b"Content-Length: %d\r\n" % len(body)
        if request.method == "HEAD" or response.status in _WITHOUT_BODY:
            body = b""
        self.write(self._heads.render(response, framing, self._clock.now_ms()) + body)
        if self._drain is not None:
            request.memory.hold(max(0, len(body) - response.reserved))
            await self._drained()
        return len(body)

    async def _send_blocks(self, request: Request, response: StreamedResponse, framing: bytes) -> int:
        is_chunked, sent = not request.is_http_1_0, 0
        if is_chunked:
            framing += b"Transfer-Encoding: chunked\r\n"
        self.write(self._heads.render(response, framing, self._clock.now_ms()))
        async with aclosing(response.blocks) as blocks:
            if request.method == "HEAD":
                return 0
            try:
                async for block in blocks:
                    if block:
                        self.write(b"%x\r\n%s\r\n" % (len(block), block) if is_chunked else block)
                        sent += len(block)
                        await self._block_drained(request, max(0, len(block) - response.reserved))
            except StrandlineError as error:
                log.warning("answer aborted", path=request.path, remote=request.remote, reason=str(error))
                raise AnswerAbortedError(str(error)) from error
        if is_chunked:
            self.write(b"0\r\n\r\n")
        await self._drained()
        return sent

    async def _block_drained(self, request: Request, size: int) -> None:
        """Wait until a block is accepted. Its memory is counted until then, except what was reserved for it."""
        if self._drain is not None:
            request.memory.hold(size)
            await self._drained()
            request.memory.shrink(size)
        elif self._transport.is_closing():
            raise ConnectionResetError("the client has closed the connection")

    async def _drained(self) -> None:
        if self._drain is not None:
            await self._drain
        if self._transport.is_closing():
            raise ConnectionResetError("the client has closed the connection")

    def _accepted_bytes(self) -> int:
        return self._written - self._transport.get_write_buffer_size()
