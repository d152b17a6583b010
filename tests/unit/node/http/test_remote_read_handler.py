"""`POST /api/v1/read` over HTTP."""

import asyncio
import gc
import gzip
import io
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from typing import TypeVar

import aiohttp
import pytest

from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp
from strandline.node.http.connection_limits import ConnectionLimits
from strandline.node.http.remote_read import handler
from strandline.node.http.remote_read.handler import MAX_BODY, read_routes
from strandline.node.http.routes import Access
from strandline.node.masking import SecretMask
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.query.answers import LACKS_LATER_ONLY
from strandline.node.query.queries import QueryScope, QueryTimedOut, QueryTooLarge, QueryUnavailable
from strandline.node.query.shard_requests import SamplesRequest, SeriesRequest
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers
from strandline.time_range import TimeRange
from support.http_servers import Served, eventually, in_loop, served
from support.read_queries import ReadQueries
from support.remote_read import (
    LabelMatcher,
    Labels,
    Query,
    ReadHints,
    Samples,
    bits_of,
    packed_request,
    read_sampled,
    read_streamed,
)

pytestmark = pytest.mark.unit

STALE = 0x7FF0000000000002
UP_A: Labels = (("__name__", "up"), ("job", "a"))
UP_B: Labels = (("__name__", "up"), ("job", "b"))
LOAD: Labels = (("__name__", "load"), ("job", "a"))
SERIES: dict[Labels, Samples] = {
    LOAD: [(1000, bits_of(0.5)), (2000, bits_of(0.7))],
    UP_A: [(1000, bits_of(1.0)), (2000, bits_of(1.0)), (3000, STALE)],
    UP_B: [(1500, bits_of(0.0))],
}
UP = [LabelMatcher(name="__name__", value="up")]
IMPATIENT = ConnectionLimits(10, request_timeout_s=60, min_rate=1 << 10, rate_window_s=0.2)
Result = TypeVar("Result")
Talk = Callable[[Served], Awaitable[Result]]


def talk(
    queries: ReadQueries,
    conversation: Talk[Result],
    *,
    mask: SecretMask | None = None,
    limits: ConnectionLimits | None = None,
    memory: AnswerMemory | None = None,
    **settings: object,
) -> Result:
    """Serve these queries during a client's conversation."""

    async def test() -> Result:
        with closing(Workers(2)) as workers:
            routes = read_routes(queries, workers, QuerySettings.model_validate(settings), mask=mask)
            assert [(route.methods, route.access) for route in routes] == [(("POST",), Access.READ)]
            async with served(routes, max_body=MAX_BODY, limits=limits, memory=memory) as serving:
                return await conversation(serving)

    return in_loop(test())


class ReadResponse:
    """A complete response."""

    def __init__(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        self.status, self.headers, self.body = response.status, response.headers, body

    @property
    def text(self) -> str:
        assert self.headers["Content-Type"] == "text/plain; charset=utf-8"
        return self.body.decode()


def read(
    queries: ReadQueries, body: bytes, *, encoding: str = "snappy", parameters: str = "", **settings: object
) -> ReadResponse:
    return talk(queries, lambda serving: posted(serving, io.BytesIO(body), encoding, parameters), **settings)


async def posted(serving: Served, body: object, encoding: str = "snappy", parameters: str = "") -> ReadResponse:
    headers = {"Content-Encoding": encoding, "Content-Type": "application/x-protobuf"}
    async with serving.client.post(f"/api/v1/read{parameters}", data=body, headers=headers) as response:
        return ReadResponse(response, await response.read())


def one_query(*accepted: int, start: int = 0, end: int = 10_000, **fields: object) -> bytes:
    return packed_request([Query(start_timestamp_ms=start, end_timestamp_ms=end, matchers=UP, **fields)], accepted)


def test_a_sampled_response_is_one_snappy_block() -> None:
    response = read(ReadQueries(SERIES), one_query())
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/x-protobuf"
    assert response.headers["Content-Encoding"] == "snappy"
    # The staleness marker has its exact bits.
    assert read_sampled(response.body) == [{UP_A: SERIES[UP_A], UP_B: SERIES[UP_B]}]


def test_a_chunked_response_is_a_stream_of_frames() -> None:
    response = read(ReadQueries(SERIES), one_query(1, 0))
    assert response.status == 200
    expected = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"
    assert response.headers["Content-Type"] == expected
    assert "Content-Encoding" not in response.headers
    assert read_streamed(response.body, 1) == [{UP_A: SERIES[UP_A], UP_B: SERIES[UP_B]}]


@pytest.mark.parametrize("accepted", [0, 1])
def test_queries_are_answered_in_their_order(accepted: int) -> None:
    load = [LabelMatcher(type=2, name="__name__", value="lo.*"), LabelMatcher(type=3, name="job", value="b|c")]
    no_match = [LabelMatcher(name="__name__", value="none")]
    requested = [
        Query(start_timestamp_ms=2000, end_timestamp_ms=2999, matchers=UP),
        Query(start_timestamp_ms=0, end_timestamp_ms=5000, matchers=no_match),
        Query(start_timestamp_ms=1000, end_timestamp_ms=1000, matchers=load),
    ]
    queries = ReadQueries(SERIES)
    response = read(queries, packed_request(requested, [accepted]))
    results = read_streamed(response.body, 3) if accepted else read_sampled(response.body)
    assert results == [{UP_A: SERIES[UP_A][1:2]}, {}, {LOAD: SERIES[LOAD][:1]}]
    assert isinstance(queries.asks[2], SamplesRequest)
    assert queries.asks[2].selector == (
        Matcher("__name__", MatchOp.MATCH, "lo.*"),
        Matcher("job", MatchOp.NOT_MATCH, "b|c"),
    )
    assert queries.asks[2].within == TimeRange(1000, 1000)


@pytest.mark.parametrize("accepted", [0, 1])
def test_a_range_that_ends_before_it_starts_is_empty_and_not_queried(accepted: int) -> None:
    queries = ReadQueries(SERIES)
    response = read(queries, one_query(accepted, start=2000, end=1999))
    assert response.status == 200
    assert (read_streamed(response.body, 1) if accepted else read_sampled(response.body)) == [{}]
    assert queries.asks == []


@pytest.mark.parametrize("accepted", [0, 1])
def test_a_request_without_a_query_has_an_answer_without_a_result(accepted: int) -> None:
    response = read(ReadQueries(SERIES), packed_request([], [accepted]))
    assert (response.status, response.body) == (200, b"" if accepted else b"\x00")


@pytest.mark.parametrize("accepted", [0, 1])
def test_a_request_for_labels_only_reads_no_samples(accepted: int) -> None:
    queries = ReadQueries(SERIES)
    response = read(queries, one_query(accepted, hints=ReadHints(func="series")))
    assert (read_streamed(response.body, 1) if accepted else read_sampled(response.body)) == [{UP_A: [], UP_B: []}]
    selector = (Matcher("__name__", MatchOp.EQUAL, "up"),)
    assert queries.asks == [SeriesRequest((selector,), TimeRange(0, 10_000), QuerySettings().max_series)]


def test_more_labels_than_a_query_may_read_are_refused() -> None:
    response = read(ReadQueries(SERIES), one_query(hints=ReadHints(func="series")), max_series=1)
    assert response.status == 422
    assert "series limit (1): the selector matches 2 series" in response.text
    assert "query.max_series" in response.text


def test_the_limits_of_a_query_hold() -> None:
    assert read(ReadQueries(SERIES), one_query(), max_samples=4, max_series=2).status == 200
    refused = read(ReadQueries(SERIES), one_query(), max_samples=3)
    assert (refused.status, refused.text) == (422, "exceeded sample limit (3). Ask for less\n")
    refused = read(ReadQueries(SERIES), one_query(1), max_series=1)
    assert (refused.status, refused.text) == (422, "exceeded series limit (1)\n")


def test_the_queries_of_a_request_share_the_limits() -> None:
    query = Query(start_timestamp_ms=0, end_timestamp_ms=10_000, matchers=UP)
    assert read(ReadQueries(SERIES), packed_request([query] * 2), max_samples=8, max_series=4).status == 200
    for limits in ({"max_samples": 7}, {"max_series": 3}):
        refused = read(ReadQueries(SERIES), packed_request([query] * 2), **limits)
        assert refused.status == 422
        assert refused.text.startswith("query 2 of 2, with what the earlier ones left of the limits: exceeded")


@pytest.mark.parametrize("accepted", [0, 1])
def test_an_answer_that_may_be_partial_is_refused_with_the_reason(accepted: int) -> None:
    queries = ReadQueries(SERIES, ("shard 1 is recovering (40 %)",))
    response = read(queries, one_query(accepted))
    assert response.status == 503
    assert response.text.startswith("the answer may be partial: shard 1 is recovering (40 %)")
    assert "?partial=allow" in response.text
    assert read(queries, one_query(accepted), parameters="?partial=deny").status == 503


def test_reads_of_times_that_only_very_late_samples_may_reach_go_on_while_kafka_is_away() -> None:
    warning = f"shard 1 can't reach Kafka (24 s): {LACKS_LATER_ONLY}"
    queries = ReadQueries(SERIES, (warning,))
    response = read(queries, one_query())
    assert (response.status, response.headers["X-Strandline-Warnings"]) == (200, warning)
    queries.warnings = (warning, "shard 0 is recovering")
    refused = read(queries, one_query())
    assert (refused.status, LACKS_LATER_ONLY in refused.text) == (503, False)


def test_a_client_may_request_a_partial_answer() -> None:
    queries = ReadQueries(SERIES, ("shard 1 is\nrecovering", "a list “was” cut off"))
    response = read(queries, one_query(), parameters="?partial=allow")
    assert response.status == 200
    assert read_sampled(response.body) == [{UP_A: SERIES[UP_A], UP_B: SERIES[UP_B]}]
    assert response.headers["X-Strandline-Warnings"] == "shard 1 is recovering; a list ?was? cut off"


def test_a_node_of_several_is_read_by_clients_that_read_from_all() -> None:
    elsewhere = "this node does not serve partition 1 of 2: the answer lacks the series there"
    queries = ReadQueries(SERIES, (elsewhere,))
    queries.unserved_partitions = (elsewhere,)
    refused = read(queries, one_query())
    assert (refused.status, elsewhere in refused.text) == (503, True)
    assert refused.text.endswith("Read from every node of the dataset, each with ?partial=node\n")
    response = read(queries, one_query(), parameters="?partial=node")
    assert (response.status, response.headers["X-Strandline-Warnings"]) == (200, elsewhere)
    queries.warnings = ("shard 0 is recovering", elsewhere)
    refused = read(queries, one_query(), parameters="?partial=node")
    assert refused.status == 503, "series of the node's own partitions are complete or refused"
    assert refused.text.startswith("the answer may be partial: shard 0 is recovering. Try again")


def test_an_unknown_value_of_partial_is_refused() -> None:
    response = read(ReadQueries(SERIES), one_query(), parameters="?partial=yes")
    assert (response.status, response.text) == (400, "partial=yes is not a valid value. Use allow, deny or node\n")


def test_a_warning_of_several_queries_is_sent_once() -> None:
    query = Query(end_timestamp_ms=10_000, matchers=UP)
    response = read(ReadQueries(SERIES, ("shard 1 is away",)), packed_request([query] * 3))
    assert response.text.count("shard 1 is away") == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidMatcher("no expression", remedy="Write another"), 400),
        (QueryTooLarge("too large"), 422),
        (QueryUnavailable("no shard answers"), 503),
        (QueryTimedOut("too late"), 503),
    ],
)
def test_an_error_is_plain_text_with_its_status(error: Exception, status: int) -> None:
    queries = ReadQueries(SERIES)

    async def fail(_scope: QueryScope) -> None:
        raise error

    queries.before = fail
    response = read(queries, one_query())
    assert (response.status, response.text) == (status, f"{error}\n")


def test_no_error_shows_a_secret() -> None:
    queries = ReadQueries(SERIES)

    async def fail(_scope: QueryScope) -> None:
        raise QueryUnavailable("the driver said: bad password hunter22")

    queries.before = fail
    response = read(queries, one_query(), mask=SecretMask(["hunter22"]))
    assert response.text == "the driver said: bad password (hidden)\n"


def test_a_broken_request_is_answered_with_400_and_the_reason() -> None:
    response = read(ReadQueries(SERIES), b"no snappy")
    assert response.status == 400
    assert response.text.startswith("the read request can't be decompressed: ")


def test_a_body_that_is_too_large_is_refused_however_it_is_sent() -> None:
    announced = read(ReadQueries(SERIES), bytes(MAX_BODY + 1))
    assert announced.status == 413
    assert str(MAX_BODY) in announced.body.decode()

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY >> 20):
            yield bytes(1 << 20)
        yield b"1"

    chunked = talk(ReadQueries(SERIES), lambda serving: posted(serving, chunks()))
    assert chunked.status == 413
    assert str(MAX_BODY) in chunked.text


def test_a_body_with_another_encoding_is_refused() -> None:
    response = read(ReadQueries(SERIES), gzip.compress(one_query()), encoding="gzip")
    assert response.status == 415
    assert "compressed with snappy, not 'gzip'" in response.text


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
