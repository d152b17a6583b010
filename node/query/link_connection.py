"""A connection of the event loop to a shard's process, which exchanges a request frame for an answer frame."""

import asyncio
from typing import cast

import numpy as np

from strandline.node.query.answer_memory import MemoryLease
from strandline.node.query.frames import PREFIX, FrameDamaged, lengths_of
from strandline.node.query.link_socket import SMALL_MESSAGE, LinkBroken

Frame = bytearray | memoryview


class LinkConnection(asyncio.BufferedProtocol):
    """For one exchange at a time, and one event loop."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._small = bytearray(SMALL_MESSAGE)
        self._buffer = memoryview(self._small)
        self._filled = 0
        self._size: int | None = None
        self._memory: MemoryLease | None = None
        self._answer: asyncio.Future[Frame] | None = None
        self.is_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have this interface, but do not inherit from it.
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
            self._receive()
        except Exception as error:  # noqa: BLE001 - for the task that waits for the answer
            self._fail(error)
            self.close()

    async def exchange(self, frame: bytes, memory: MemoryLease) -> Frame:
        """Send a frame, and return the answer. A long answer is counted as memory before it is received.

        Raises `LinkBroken` (`clean` if nothing was received), `FrameDamaged`, and what `MemoryLease.grow` raises.
        Without an answer, the connection is closed, which cancels the request in the shard.
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
        """Close the connection at once."""
        self.is_open = False
        self._transport.abort()

    def _receive(self) -> None:
        if self._answer is None:
            raise FrameDamaged("a shard sent data without a request")
        if self._size is None:
            if self._filled < PREFIX.size:
                return
            header, body = lengths_of(self._buffer[: PREFIX.size])
            self._size = PREFIX.size + header + body
            if self._size > SMALL_MESSAGE:
                self._allocate(self._size)
        if self._filled > self._size:
            raise FrameDamaged(f"{self._filled - self._size} bytes follow after a frame")
        if self._filled == self._size:
            frame: Frame = self._buffer
            if self._size <= SMALL_MESSAGE:
                frame = self._small[: self._size]
            self._buffer, self._filled = memoryview(self._small), 0
            if not self._answer.done():
                self._answer.set_result(frame)

    def _allocate(self, size: int) -> None:
        if self._memory is not None:
            self._memory.grow(size)
        # The kernel allocates pages as they are written, so a wrong length takes no memory.
        buffer = np.empty(size, dtype=np.uint8).data
        buffer[: self._filled] = self._buffer[: self._filled]
        self._buffer = buffer

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
