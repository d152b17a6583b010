"""Writes answers to a client, no faster than the client takes them.

The transport's write limits are as low as can be, so that `pause` and `resume` say whether the client's side has taken
what was written. Until it has, the next block of an answer is not made, and the answer's memory counts.
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


class AnswerBrokenOffError(ConnectionError):
    """The client has some of the answer, and can only be cut off."""


class AnswerWriter:
    """Writes to one transport. It belongs to one event loop."""

    def __init__(self, transport: asyncio.Transport, heads: Heads, clock: Clock, watch: RateWatch) -> None:
        self._transport, self._heads, self._clock, self._watch = transport, heads, clock, watch
        self._drain: asyncio.Future[None] | None = None
        self._written = 0
        self.is_sending = False
        """Whether some of an answer may be out, and not all of it."""

    def begin(self) -> None:
        """Have the transport say when it holds anything. It may call `pause` at once."""
        # Not zero: a TLS transport pauses when it holds as much as the high limit, which would be always.
        self._transport.set_write_buffer_limits(high=1, low=0)

    @property
    def is_drained(self) -> bool:
        """Whether the client's side has taken all that was written."""
        return self._drain is None

    def is_too_slow(self, now: float) -> bool:
        """Whether the client takes less than it has to."""
        return self._drain is not None and self._watch.is_too_slow(now, self._taken_bytes())

    def pause(self, now: float) -> None:
        """The client's side has not taken all that was written."""
        if self._drain is None:
            self._drain = asyncio.get_running_loop().create_future()
            self._watch.start(now, self._taken_bytes())

    def resume(self) -> None:
        """It has, or it is gone."""
        drain, self._drain = self._drain, None
        if drain is not None and not drain.done():
            drain.set_result(None)

    def write(self, data: bytes) -> None:
        """Write some bytes."""
        if not self._transport.is_closing():
            self._written += len(data)
            self._transport.write(data)

    async def send(self, request: Request, response: AnyResponse, *, closes: bool) -> int:
        """Send an answer; how many bytes its body has. Returns when the client's side has taken all of it. Raises
        `ConnectionError` if the client goes away, or the rest of the answer can't be made.
        """
        framing = b"Connection: close\r\n" if closes else b""
        self.is_sending = True
        try:
            if isinstance(response, StreamedResponse):
                return await self._send_blocks(request, response, framing)
            return await self._send_whole(request, response, framing)
        finally:
            self.is_sending = False

    async def _send_whole(self, request: Request, response: Response, framing: bytes) -> int:
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
                        await self._taken(request, max(0, len(block) - response.reserved))
            except StrandlineError as error:
                log.warning("answer broken off", path=request.path, remote=request.remote, reason=str(error))
                raise AnswerBrokenOffError(str(error)) from error
        if is_chunked:
            self.write(b"0\r\n\r\n")
        await self._drained()
        return sent

    async def _taken(self, request: Request, size: int) -> None:
        """Wait until a block is taken; what was not reserved for it counts as memory until then."""
        if self._drain is not None:
            request.memory.hold(size)
            await self._drained()
            request.memory.shrink(size)
        elif self._transport.is_closing():
            raise ConnectionResetError("the client has gone away")

    async def _drained(self) -> None:
        if self._drain is not None:
            await self._drain
        if self._transport.is_closing():
            raise ConnectionResetError("the client has gone away")

    def _taken_bytes(self) -> int:
        return self._written - self._transport.get_write_buffer_size()
