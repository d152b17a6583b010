"""`POST /api/v1/read` with slow and disconnecting clients, timeouts, and answers that fail midway."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator

import aiohttp
import pytest

from strandline.node.http.connection_limits import ConnectionLimits
from strandline.node.http.remote_read import handler
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.query.queries import QueryScope, QueryTimedOut
from support.http_servers import Served, eventually
from support.read_queries import ReadQueries
from support.read_responses import (
    SERIES,
    one_query,
    posted,
    read,
    talk,
)

pytestmark = pytest.mark.unit

IMPATIENT = ConnectionLimits(10, request_timeout_s=60, min_rate=1 << 10, rate_window_s=0.2)


class Parts:
    """Endless parts of an answer, with the number of parts produced."""

    def __init__(self, fails_after: int = 1000) -> None:
        self.produced, self.fails_after = 0, fails_after
        self.ended = threading.Event()

    def __call__(self, _columns: object) -> Iterator[bytes]:
        try:
            while self.produced < self.fails_after:
                self.produced += 1
                yield bytes(1 << 20)
            raise QueryTimedOut("too late")
        finally:
            self.ended.set()


async def wait_until_collected(condition: Callable[[], bool]) -> None:
    await eventually(lambda: gc.collect() >= 0 and condition())


async def unread_response(serving: Served, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send a request over a new connection without reading the answer."""
    reader, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port)
    head = f"POST /api/v1/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return reader, writer


def test_the_answer_is_produced_no_faster_than_it_is_read_and_a_stalled_client_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts, memory = Parts(), AnswerMemory(1 << 30)
    monkeypatch.setattr(handler, "streamed_parts", parts)

    async def conversation(serving: Served) -> None:
        _, writer = await unread_response(serving, one_query(1))
        await wait_until_collected(parts.ended.is_set)
        await wait_until_collected(lambda: memory.used == 0)
        writer.close()

    talk(ReadQueries(SERIES), conversation, limits=IMPATIENT, memory=memory)
    assert parts.produced < 50  # The capacity of the two sockets' buffers.


def test_a_client_that_disconnects_ends_its_answer_and_releases_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, memory = Parts(), AnswerMemory(1 << 30)
    monkeypatch.setattr(handler, "streamed_parts", parts)

    async def conversation(serving: Served) -> None:
        reader, writer = await unread_response(serving, one_query(1))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        await wait_until_collected(lambda: memory.used > 0)
        writer.transport.abort()
        await wait_until_collected(parts.ended.is_set)
        await wait_until_collected(lambda: memory.used == 0)

    talk(ReadQueries(SERIES), conversation, memory=memory)
    assert parts.produced < 50


def test_a_client_that_disconnects_cancels_its_queries() -> None:
    queries, cancelled, received = ReadQueries(SERIES), asyncio.Event(), asyncio.Event()

    async def wait(_scope: QueryScope) -> None:
        received.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    queries.before = wait

    async def conversation(serving: Served) -> None:
        _, writer = await unread_response(serving, one_query())
        await received.wait()
        writer.transport.abort()
        await cancelled.wait()

    talk(queries, conversation, timeout="20s")


def test_queries_have_the_timeout_of_the_settings() -> None:
    queries, timeouts = ReadQueries(SERIES), list[float]()

    async def note(scope: QueryScope) -> None:
        timeouts.append(scope.timeout_s)

    queries.before = note
    read(queries, one_query(), timeout="7s")
    assert timeouts == [7]


@pytest.mark.parametrize(("used", "status"), [(0, 422), (50, 503)])
def test_without_memory_the_request_is_refused_in_plain_text(used: int, status: int) -> None:
    queries, memory = ReadQueries(SERIES), AnswerMemory(100)

    async def take(scope: QueryScope) -> None:
        scope.memory.grow(101 - used)

    queries.before = take
    memory.lease().hold(used)

    response = talk(queries, lambda serving: posted(serving, one_query()), memory=memory)
    assert response.status == status
    assert "query.answer_memory" in response.text
    assert memory.used == used


def test_an_answer_that_fails_midway_is_recognisably_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "streamed_parts", Parts(fails_after=3))

    async def conversation(serving: Served) -> None:
        async with serving.client.post("/api/v1/read", data=one_query(1)) as response:
            assert response.status == 200
            with pytest.raises(aiohttp.ClientError):
                await response.read()

    talk(ReadQueries(SERIES), conversation)
