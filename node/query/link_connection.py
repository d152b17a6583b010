"""One connection of the event loop to a shard's process: a frame is sent, and a frame comes back."""

import asyncio
from typing import cast

import numpy as np

from strandline.node.query.answer_memory import MemoryLease
from strandline.node.query.frames import PREFIX, FrameDamaged, lengths_of
from strandline.node.query.link_socket import SMALL_MESSAGE, LinkBroken

Frame = bytearray | memoryview


class LinkConnection(asyncio.BufferedProtocol):
    """For one exchange at a time. It belongs to one event loop."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._short = bytearray(SMALL_MESSAGE)
        self._buffer = memoryview(self._short)
        self._filled = 0
        self._size: int | None = None
        self._memory: MemoryLease | None = None
        self._answer: asyncio.Future[Frame] | None = None
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have this interface, but are not of this class.
        self._transport, self.is_open = cast("asyncio.Transport", transport), True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        reason = "the connection was lost" if exc is None else f"the connection was lost: {exc}"
        self._fail(LinkBroken(reason, clean=not self._filled))

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        try:
            self._take()
        except Exception as error:  # noqa: BLE001 - for the task that waits for the answer
            self._fail(error)
            self.close()

    async def exchange(self, frame: bytes, memory: MemoryLease) -> Frame:
        """Send a frame, and return the one that comes back. What is long counts as memory before it is received.

        Raises `LinkBroken` (`clean` if nothing has come back), `FrameDamaged`, and what `MemoryLease.grow` raises.
        However it ends, but for an answer, the connection is closed, which tells the shard to stop working on it.
        """
        if not self.is_open:
            raise LinkBroken("the connection is closed", clean=True)
        self._memory, self._filled, self._size = memory, 0, None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        try:
            return await self._answer
        except BaseException:
            self.close()
            raise
        finally:
            self._answer = self._memory = None

    def close(self) -> None:
        """End it."""
        self.is_open = False
        self._transport.abort()

    def _take(self) -> None:
        if self._answer is None:
            raise FrameDamaged("a shard sent what it was not asked for")
        if self._size is None:
            if self._filled < PREFIX.size:
                return
            header, body = lengths_of(self._buffer[: PREFIX.size])
            self._size = PREFIX.size + header + body
            if self._size > SMALL_MESSAGE:
                self._make_room(self._size)
        if self._filled > self._size:
            raise FrameDamaged(f"{self._filled - self._size} bytes came behind a frame")
        if self._filled == self._size:
            frame: Frame = self._buffer
            if self._size <= SMALL_MESSAGE:
                frame = self._short[: self._size]
            self._buffer, self._filled = memoryview(self._short), 0
            if not self._answer.done():
                self._answer.set_result(frame)

    def _make_room(self, size: int) -> None:
        if self._memory is not None:
            self._memory.grow(size)
        # The system gives the memory as it is filled: a length that is not true takes nothing.
        room = np.empty(size, dtype=np.uint8).data
        room[: self._filled] = self._buffer[: self._filled]
        self._buffer = room

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
