"""The memory of answers until their clients have read them, and the refusal of answers without memory."""

import asyncio
import gzip
from typing import Any

import orjson
import pytest

from strandline.node.http.connection_limits import ConnectionLimits
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.query.queries import QueryScope
from strandline.node.query.shard_requests import ShardRequest
from support.fake_queries import FakeQueries
from support.http_servers import Served, api_served, eventually, in_loop

pytestmark = pytest.mark.unit

PATHS = [
    "/api/v1/series?match[]=up",
    "/api/v1/labels",
    "/api/v1/label/job/values",
    "/api/v1/query?query=up&time=1",
    "/api/v1/query?query=up[1m]&time=1",
    "/api/v1/query_range?query=up&start=0&end=2&step=1",
    "/api/v1/status/tsdb",
]
UP = [({"__name__": "up", "job": "a"}, [(1000, 1.0)])]
MANY = [({"__name__": "up", "n": f"{number:05}", "long": "x" * 4000}, [(1000, 1.0)]) for number in range(5000)]
"""About 20 MB: more than the socket buffers between a server and a client hold."""
IMPATIENT = ConnectionLimits(10, request_timeout_s=60, min_rate=1 << 10, rate_window_s=0.2)


def head_of(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


async def unread_response(serving: Served, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that has sent a request, and reads no more of the answer than its socket buffers hold."""
    reader, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port, limit=1024)
    writer.write(head_of(path))
    return reader, writer


@pytest.mark.parametrize("path", PATHS)
def test_memory_is_released_when_the_client_has_the_answer(path: str) -> None:
    memory = AnswerMemory(10_000)

    async def test() -> int:
        async with api_served(FakeQueries(UP, size=4_000), memory=memory) as serving:
            for _ in range(3):
                assert (await serving.get(path)).status == 200
            await eventually(lambda: memory.used == 0)
            return (await serving.get(path)).status

    assert in_loop(test()) == 200


@pytest.mark.parametrize("path", PATHS)
def test_a_query_without_memory_gets_a_retryable_error_that_names_the_setting(path: str) -> None:
    memory = AnswerMemory(10_000)
    memory.lease().hold(5_000)
    body = body_of_refusal(path, memory, 503, FakeQueries(UP, size=6_000))
    assert body["errorType"] == "unavailable"
    assert "query.answer_memory" in body["error"]
    assert memory.used == 5_000


@pytest.mark.parametrize("path", PATHS)
def test_a_query_with_an_answer_above_the_memory_gets_an_error_that_is_not_retryable(path: str) -> None:
    memory = AnswerMemory(10_000)
    memory.lease().hold(5_000)
    body = body_of_refusal(path, memory, 422, FakeQueries(UP, size=10_001))
    assert body["errorType"] == "execution"
    assert "query.answer_memory" in body["error"]
    assert memory.used == 5_000


def body_of_refusal(path: str, memory: AnswerMemory, status: int, queries: FakeQueries) -> Any:
    async def test() -> Any:
        async with api_served(queries, memory=memory) as serving:
            reply = await serving.get(path)
            assert reply.status == status
            return orjson.loads(reply.body)

    return in_loop(test())


def test_points_in_excess_of_samples_are_counted_before_their_evaluation() -> None:
    """Ten thousand points from one sample."""
    memory = AnswerMemory(100_000)
    path = "/api/v1/query_range?query=up&start=1&end=100&step=0.01&lookback_delta=1h"
    assert body_of_refusal(path, memory, 422, FakeQueries(UP))["errorType"] == "execution"
    assert memory.used == 0
    memory.limit = 4_000_000

    async def test() -> int:
        async with api_served(FakeQueries(UP), memory=memory) as serving:
            return (await serving.get(path)).status

    assert in_loop(test()) == 200
    assert memory.used == 0


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_an_answer_of_many_blocks_is_complete_and_uses_little_memory(encoding: str) -> None:
    memory = AnswerMemory(1 << 30)

    async def test() -> bytes:
        async with api_served(FakeQueries(MANY), memory=memory) as serving:
            async with serving.client.get(PATHS[0], headers={"Accept-Encoding": encoding}) as response:
                assert response.headers["Transfer-Encoding"] == "chunked"
                assert response.headers.get("Content-Encoding", "identity") == encoding
                body = await response.read()
            await eventually(lambda: memory.used == 0)
            return body

    assert orjson.loads(in_loop(test()))["data"] == [labels for labels, _ in MANY]


def test_an_answer_without_memory_for_its_text_is_refused_before_it_begins() -> None:
    """The memory has room for its columns, but not for a block of text in addition."""
    memory = AnswerMemory(2 << 20)
    body = body_of_refusal(PATHS[0], memory, 422, FakeQueries(MANY, size=1 << 20))
    assert "query.answer_memory" in body["error"]
    assert memory.used == 0


def test_slow_clients_never_use_more_than_the_limit() -> None:
    """Each answer takes 1 MB of columns and two blocks of unread text."""
    memory = AnswerMemory(10 << 20)
    peak = 0

    class PeakQueries(FakeQueries):
        async def _begin(self, request: ShardRequest, scope: QueryScope) -> None:
            nonlocal peak
            peak = max(peak, memory.used)
            await super()._begin(request, scope)

    async def test() -> list[int]:
        async with api_served(PeakQueries(MANY, size=1 << 20), memory=memory) as serving:
            clients = [await unread_response(serving, PATHS[0]) for _ in range(8)]
            heads = [await reader.readline() for reader, _ in clients]
            await eventually(lambda: memory.used > 0)
            assert max(peak, memory.used) <= memory.limit
            for _, writer in clients:
                writer.transport.abort()
            await eventually(lambda: memory.used == 0)
            return [int(head.split()[1]) for head in heads]

    statuses = in_loop(test())
    assert sorted(set(statuses)) == [200, 503]
    assert statuses.count(200) == 3


def test_of_a_large_unread_answer_one_block_is_counted_besides_its_columns() -> None:
    memory, columns = AnswerMemory(1 << 30), 1000

    async def test() -> int:
        async with api_served(FakeQueries(MANY, size=columns), memory=memory) as serving:
            reader, writer = await unread_response(serving, PATHS[0])
            await eventually(lambda: memory.used > columns)
            used = memory.used
            writer.transport.abort()
            await eventually(lambda: memory.used == 0)
            del reader
            return used

    assert columns + (1 << 20) <= in_loop(test()) < columns + (8 << 20)


def test_a_client_that_does_not_read_a_large_answer_is_disconnected_and_its_memory_released() -> None:
    memory = AnswerMemory(1 << 30)

    async def test() -> None:
        async with api_served(FakeQueries(MANY, size=1000), memory=memory, limits=IMPATIENT) as serving:
            _, writer = await unread_response(serving, PATHS[0])
            await eventually(lambda: memory.used > 0)
            await eventually(lambda: memory.used == 0)
            assert len(serving.server._connections) == 0
            writer.close()

    in_loop(test())


def test_answers_of_slow_clients_use_up_the_memory_and_others_are_refused() -> None:
    memory = AnswerMemory(10 << 20)

    async def test() -> None:
        async with api_served(FakeQueries(MANY, size=6 << 20), memory=memory) as serving:
            _, writer = await unread_response(serving, PATHS[0])
            await eventually(lambda: memory.used > 6 << 20)
            assert (await serving.get("/api/v1/labels")).status == 503
            writer.transport.abort()
            await eventually(lambda: memory.used == 0)
            assert (await serving.get("/api/v1/labels")).status == 200

    in_loop(test())


def test_a_head_request_does_not_encode_a_large_answer() -> None:
    memory = AnswerMemory(1 << 30)

    async def test() -> None:
        async with api_served(FakeQueries(MANY), memory=memory) as serving:
            for path in PATHS:
                reply = await serving.head(path)
                assert (reply.status, reply.body) == (200, b"")
            # The connection serves the next request.
            reader, writer = await unread_response(serving, PATHS[0])
            writer.close()
            del reader
            raw = await serving.raw(head_of(PATHS[0], "HEAD") + b"GET /nothing HTTP/1.0\r\n\r\n")
            await eventually(lambda: memory.used == 0)
            first, _, second = raw.partition(b"\r\n\r\n")
            assert first.startswith(b"HTTP/1.1 200 ")
            assert second.startswith(b"HTTP/1.1 404 ")

    in_loop(test())


def test_a_client_of_http_1_0_gets_a_large_answer_up_to_the_end_of_the_connection() -> None:
    async def test() -> bytes:
        async with api_served(FakeQueries(MANY)) as serving:
            return await serving.raw(b"GET " + PATHS[0].encode() + b" HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n")

    head, _, body = in_loop(test()).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head
    assert len(orjson.loads(gzip.decompress(body))["data"]) == len(MANY)
