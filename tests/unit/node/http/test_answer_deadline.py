"""`query.timeout` bounds a request from its arrival until its client has the answer."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import closing

import orjson
import pytest

from strandline.clock import SystemClock
from strandline.node.http.api.names import NamesApi
from strandline.node.http.connection import SLOW_READER, TIMED_OUT
from strandline.node.http.connection_limits import ConnectionLimits
from strandline.node.http.headers import Headers
from strandline.node.http.requests import Body, Request
from strandline.node.http.responses import AnyResponse, Response, StreamedResponse
from strandline.node.http.routes import Access, Route
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.query.index_version import IndexVersion
from strandline.node.query.queries import QueryScope
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers
from support.fake_queries import FakeQueries
from support.http_servers import api_served, eventually, in_loop, served

pytestmark = pytest.mark.unit

# Checks often, and accepts any rate of a test.
PATIENT = ConnectionLimits(10, request_timeout_s=60, min_rate=1, rate_window_s=60, check_interval_s=0.01)
PATHS = [
    "/api/v1/series?match[]=up",
    "/api/v1/labels",
    "/api/v1/label/job/values",
    "/api/v1/query?query=up&time=1",
    "/api/v1/query_range?query=up&start=0&end=2&step=1",
    "/api/v1/status/tsdb",
]
UP = [({"__name__": "up", "job": "a"}, [(1000, 1.0)])]


class EndlessAnswers:
    """A route whose answer continues for as long as the client reads it."""

    def __init__(self, *, limit_s: float | None) -> None:
        self.limit_s = limit_s

    async def handler(self, request: Request) -> AnyResponse:
        if self.limit_s is not None:
            request.limit_time(self.limit_s)
        return StreamedResponse(self.blocks())

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        while True:
            yield b"x" * (1 << 16)

    def routes(self) -> tuple[Route, ...]:
        return (Route(("GET",), "/long", self.handler, Access.READ),)


def figures_after_disconnect(answers: EndlessAnswers, limits: ConnectionLimits, *, reads: bool) -> FrontFigures:
    """The figures after the client was disconnected."""
    memory = AnswerMemory(1 << 30)
    figures = FrontFigures(SystemClock(), memory)

    async def test() -> None:
        async with served(answers.routes(), observer=figures, limits=limits, memory=memory) as serving:
            if reads:
                head = await serving.raw(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 ")
                assert not head.endswith(b"0\r\n\r\n"), "the client can detect that the answer is incomplete"
            else:
                async with serving.client.get("/long"):
                    await eventually(lambda: bool(figures.counts().cut_off))
            await eventually(lambda: figures.counts().in_flight == 0)

    in_loop(test())
    assert memory.used == 0
    return figures


def test_a_client_that_reads_fast_is_disconnected_at_the_deadline_and_counted_as_timed_out() -> None:
    counts = figures_after_disconnect(EndlessAnswers(limit_s=0.1), PATIENT, reads=True).counts()
    assert counts.cut_off == {TIMED_OUT: 1}
    assert counts.requests == {("/long", "503"): 1}


def test_a_client_that_does_not_read_is_counted_as_a_slow_reader() -> None:
    limits = ConnectionLimits(10, request_timeout_s=60, min_rate=1 << 20, rate_window_s=0.05, check_interval_s=0.01)
    counts = figures_after_disconnect(EndlessAnswers(limit_s=None), limits, reads=False).counts()
    assert counts.cut_off == {SLOW_READER: 1}
    assert counts.requests == {("/long", "499"): 1}


def test_an_answer_after_the_deadline_is_a_timeout() -> None:
    async def late(request: Request) -> AnyResponse:
        request.limit_time(-1.0)
        return Response.text("too late")

    async def test() -> tuple[int, bytes]:
        async with served([Route(("GET",), "/", late, Access.READ)], limits=PATIENT) as serving:
            reply = await serving.get("/")
            return reply.status, reply.body

    status, body = in_loop(test())
    document = orjson.loads(body)
    assert (status, document["errorType"]) == (503, "timeout")
    assert "query.timeout" in document["error"]


class RecordingQueries(FakeQueries):
    """Records the deadline of each query."""

    def __init__(self) -> None:
        super().__init__(UP)
        self.deadlines: list[float | None] = []

    async def _began(self, scope: QueryScope) -> None:
        self.deadlines.append(scope.deadline)
        await super()._began(scope)


def deadlines_of(path: str) -> Sequence[float | None]:
    queries = RecordingQueries()

    async def test() -> None:
        async with api_served(queries, limits=PATIENT) as serving:
            assert (await serving.get(path)).status == 200

    in_loop(test())
    return queries.deadlines


@pytest.mark.parametrize("path", PATHS)
def test_all_queries_of_a_request_have_the_time_until_its_deadline(path: str) -> None:
    first, *others = deadlines_of(path)
    assert first is not None
    assert others in ([], [first])


def test_a_cached_list_has_the_same_deadline() -> None:
    queries = FakeQueries(UP, version=IndexVersion((1,), 0, 0))

    async def test() -> list[float | None]:
        with closing(Workers(1)) as workers:
            api = NamesApi(queries, workers, QuerySettings())
            requests = [request_at(arrived_at) for arrived_at in (100.0, 200.0)]
            for request in requests:
                await api.labels(request)
            return [request.deadline for request in requests]

    assert in_loop(test()) == [130.0, 230.0]
    assert len(queries.cached_answers) == 1


def request_at(arrived_at: float) -> Request:
    body = Body(0, lambda: None)
    body.complete()
    memory = AnswerMemory(1 << 20)
    return Request("GET", "/api/v1/labels", Headers({}), body, memory.lease(), arrived_at=arrived_at)
