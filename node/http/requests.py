"""A request as handlers get it. Its body may not have arrived yet."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from strandline.node.http.errors import Refused, SlowRequest
from strandline.node.http.headers import Headers
from strandline.node.query.answer_memory import MemoryLease

# Bytes of a body that are buffered before the connection pauses reading.
MAX_BUFFERED = 256 << 10


class Body:
    """The body of a request, chunk by chunk as it arrives. For one event loop, and read by one task."""

    __slots__ = ("_chunks", "_failure", "_max", "_on_read", "_waiter", "buffered", "is_complete", "received")

    def __init__(self, max_bytes: int, on_read: Callable[[], None]) -> None:
        """`on_read` is called when the handler waits for more."""
        self._max, self._on_read = max_bytes, on_read
        self._chunks: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self.received = self.buffered = 0
        self.is_complete = False

    @property
    def is_awaited(self) -> bool:
        """Whether the handler waits for more."""
        return self._waiter is not None

    async def next_chunk(self) -> bytes:
        """The next bytes; empty at the end. Raises `Refused` for a body that is too large, and `SlowRequest`."""
        while not self._chunks and not self.is_complete and self._failure is None:
            self._waiter = asyncio.get_running_loop().create_future()
            self._on_read()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._failure is not None:
            raise self._failure
        if not self._chunks:
            return b""
        chunk = self._chunks.popleft()
        self.buffered -= len(chunk)
        return chunk

    async def read(self) -> bytes:
        """The complete body. Raises what `next_chunk` raises."""
        if self.is_complete and not self._chunks and self._failure is None:
            return b""
        chunks = []
        while chunk := await self.next_chunk():
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def feed(self, chunk: bytes) -> None:
        """Add received bytes."""
        self.received += len(chunk)
        if self.received > self._max:
            self.fail(Refused(413, "too_large", f"the body is larger than the {self._max} bytes that are accepted"))
        elif self._failure is None:
            self._chunks.append(chunk)
            self.buffered += len(chunk)
            self._wake()

    def complete(self) -> None:
        """The body is complete."""
        self.is_complete = True
        self._wake()

    def fail(self, failure: Exception) -> None:
        """Raise this in the handler instead of returning the rest."""
        if self._failure is None:
            self._failure = failure
            self._chunks.clear()
            self.buffered = 0
            self._wake()

    def expire(self, seconds: float) -> None:
        """The client has taken too long."""
        self.fail(SlowRequest(seconds))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Request:
    """One request. `path` is as sent, including escapes, and `query` what follows its question mark."""

    __slots__ = (
        "_arrived_at",
        "_wildcards",
        "began_at",
        "body",
        "deadline",
        "has_client_timeout",
        "headers",
        "is_http_1_0",
        "keep_alive",
        "memory",
        "method",
        "path",
        "query",
        "remote",
        "route_path",
    )

    def __init__(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: Body,
        memory: MemoryLease,
        *,
        remote: str = "",
        keep_alive: bool = True,
        is_http_1_0: bool = False,
        began_at: float = 0.0,
        arrived_at: float | None = None,
    ) -> None:
        """`memory` is the answer's memory, which the server releases when the client has the answer. `arrived_at` is
        when the head was complete, by the event loop's clock.
        """
        self.method, self.headers, self.body, self.memory = method, headers, body, memory
        self.path, _, self.query = target.partition("?")
        self.remote, self.keep_alive, self.is_http_1_0 = remote, keep_alive, is_http_1_0
        self.began_at, self._arrived_at = began_at, arrived_at
        self.deadline: float | None = None
        """When the client must have the answer, by the event loop's clock; None without a deadline."""
        self.has_client_timeout = False
        """Whether the client has set the timeout."""
        self.route_path: str | None = None
        """The path of its route as declared, of which there is a limited number."""
        self._wildcards: Mapping[str, str] = {}

    def limit_time(self, seconds: float, *, by_client: bool = False) -> None:
        """Set the deadline, from the arrival of the request. `by_client`: the client has set the timeout."""
        self.has_client_timeout = by_client
        if self._arrived_at is not None:
            self.deadline = self._arrived_at + seconds

    def matched(self, wildcards: Mapping[str, str]) -> None:
        """Set the values of the route's `{name}` segments, including escapes."""
        self._wildcards = wildcards

    def wildcard(self, name: str) -> str:
        """The value of the route's segment `{name}`; empty if the route has none. A byte that is not UTF-8 becomes a
        lone surrogate.
        """
        return unquote(self._wildcards.get(name, ""), errors="surrogateescape")

    @property
    def content_type(self) -> str:
        """The type of the body without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def content_length(self) -> int | None:
        """The length of the body, if the client announced it."""
        announced = self.headers.get("content-length", "")
        return int(announced) if announced.isascii() and announced.isdigit() else None
