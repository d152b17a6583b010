"""The counters of the HTTP front: requests reported by the server, and requests to the shards."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientError

from strandline.clock import ManualClock
from strandline.errors import Retryable
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import InvalidMatcher
from strandline.node.http.errors import Refused
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response, StreamedResponse
from strandline.node.http.routes import Access, Route
from strandline.node.metrics.counted_queries import CountedQueries
from strandline.node.metrics.front_figures import BOUNDS_S, FrontFigures
from strandline.node.metrics.node_families import node_families
from strandline.node.query.answer_memory import AnswerMemory, AnswerMemoryFull, AnswerTooLarge
from strandline.node.query.answers import BucketsAnswer, SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.index_version import IndexVersion
from strandline.node.query.queries import (
    QueryScope,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
)
from strandline.node.query.shard_requests import LabelNamesRequest, LabelValuesRequest
from strandline.node.supervisor.node_state import NodeState
from support.fake_queries import FakeQueries
from support.http_servers import eventually, in_loop, served

pytestmark = pytest.mark.unit


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def figures(clock: ManualClock) -> FrontFigures:
    return FrontFigures(clock, AnswerMemory(100))


# Counting.


def count_request(figures: FrontFigures, handler: str, code: int, seconds: float) -> None:
    figures.began()
    figures.ended(handler, code, seconds)


def test_a_request_counts_for_its_handler_and_code_and_in_the_bucket_of_its_duration(figures: FrontFigures) -> None:
    count_request(figures, "/a", 200, 0.005)
    count_request(figures, "/a", 200, 0.0051)
    count_request(figures, "/a", 503, 61.0)
    count_request(figures, "/b", 200, 0.0)
    counts = figures.counts()
    assert counts.requests == {("/a", "200"): 2, ("/a", "503"): 1, ("/b", "200"): 1}
    seconds = counts.seconds["/a"]
    assert list(seconds.cumulative) == [1] + [2] * (len(BOUNDS_S) - 1), "bounds are inclusive"
    assert (seconds.count, seconds.total) == (3, pytest.approx(61.0101))
    assert list(counts.seconds["/b"].cumulative) == [1] * len(BOUNDS_S)


def test_bounds_are_ascending_and_finite() -> None:
    assert list(BOUNDS_S) == sorted(set(BOUNDS_S))
    assert BOUNDS_S[0] > 0
    assert not math.isinf(BOUNDS_S[-1])


def test_concurrent_counts_are_all_included(figures: FrontFigures) -> None:
    def count(_: int) -> None:
        for _ in range(500):
            figures.began()
            figures.ended("/a", 200, 0.25)
            figures.count_query("samples", "answered", series=1, samples=2)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(8)))
    counts = figures.counts()
    assert counts.requests == {("/a", "200"): 4_000}
    assert (counts.seconds["/a"].count, counts.seconds["/a"].total) == (4_000, 1_000.0)
    assert (counts.queries, counts.series, counts.samples) == ({("samples", "answered"): 4_000}, 4_000, 8_000)
    assert counts.in_flight == 0


def test_a_snapshot_of_counts_does_not_change(figures: FrontFigures) -> None:
    count_request(figures, "/a", 200, 1)
    before = figures.counts()
    count_request(figures, "/a", 200, 1)
    figures.count_query("series", "answered")
    assert before.requests == {("/a", "200"): 1}
    assert before.seconds["/a"].count == 1
    assert before.queries == {}


# Requests.


async def answer(request: Request) -> AnyResponse:
    match request.wildcard("name"):
        case "teapot":
            return Response(status=418)
        case "refused":
            raise Refused(422, "execution", "too much")
        case "gone":
            raise ConnectionResetError
        case "wrong":
            raise ValueError("wrong")
        case "broken":
            return StreamedResponse(broken_body())
    return Response.text("fine")


async def broken_body() -> AsyncGenerator[bytes, None]:
    yield b"some"
    raise QueryTimedOut("too late")


ROUTES = (Route(("GET",), "/label/{name}/values", answer, Access.READ),)


@pytest.mark.parametrize(
    ("name", "code"),
    [("any", "200"), ("teapot", "418"), ("refused", "422"), ("wrong", "500"), ("gone", "499"), ("broken", "499")],
)
def test_a_request_is_counted_with_the_code_of_its_answer(
    figures: FrontFigures, clock: ManualClock, name: str, code: str
) -> None:
    async def run() -> None:
        async with served(ROUTES, observer=figures, clock=clock) as serving:
            with suppress(ClientError):
                await serving.get(f"/label/{name}/values")
            await eventually(lambda: figures.counts().in_flight == 0)

    in_loop(run())
    counts = figures.counts()
    assert set(counts.requests) == {("/label/{name}/values", code)}


def test_a_request_that_is_being_answered_is_in_flight_and_its_time_is_counted_at_the_end(
    figures: FrontFigures, clock: ManualClock
) -> None:
    async def slow(_request: Request) -> Response:
        assert figures.counts().in_flight == 1
        clock.sleep(2)
        return Response()

    async def run() -> None:
        async with served([Route(("GET",), "/slow", slow, Access.READ)], observer=figures, clock=clock) as serving:
            await serving.get("/slow")
            await eventually(lambda: figures.counts().in_flight == 0)

    in_loop(run())
    assert figures.counts().seconds["/slow"].total == pytest.approx(2)


def test_unknown_paths_are_one_handler(figures: FrontFigures, clock: ManualClock) -> None:
    async def run() -> None:
        async with served(ROUTES, observer=figures, clock=clock) as serving:
            for number in range(20):
                await serving.get(f"/made/up/{number}")
                await serving.get(f"/label/{number}/values")
            await serving.post("/label/a/values")

    in_loop(run())
    assert figures.counts().requests == {
        ("other", "404"): 20,
        ("/label/{name}/values", "200"): 20,
        ("/label/{name}/values", "405"): 1,
    }


def test_a_client_that_disconnects_is_counted_as_such(figures: FrontFigures, clock: ManualClock) -> None:
    async def run() -> None:
        begun = asyncio.Event()

        async def wait(_request: Request) -> Response:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        routes = [Route(("GET",), "/slow", wait, Access.READ)]
        async with served(routes, observer=figures, clock=clock) as serving:
            task = asyncio.create_task(serving.get("/slow"))
            await begun.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await eventually(lambda: figures.counts().in_flight == 0)

    in_loop(run())
    assert figures.counts().requests == {("/slow", "499"): 1}


# Requests to shards.


TWO_KEYS = KeyBytes(np.array([0, 1, 2], dtype=np.int64), np.zeros(2, dtype=np.uint8))


class FixedAnswer:
    """Requests that all get the same answer."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __getattr__(self, name: str) -> Callable[[Any, QueryScope], Any]:
        if name == "unserved":
            return tuple

        async def answer_request(_request: Any, _scope: QueryScope) -> Any:
            if isinstance(self._answer, BaseException):
                raise self._answer
            return self._answer

        return answer_request


def request_once(figures: FrontFigures, answer: Any, name: str = "samples") -> Any:
    queries: Any = CountedQueries(FixedAnswer(answer), figures)  # type: ignore[arg-type]  # answers to anything
    return in_loop(getattr(queries, name)(None, QueryScope(1, AnswerMemory(0).lease())))


def test_series_and_samples_of_an_answer_are_counted(figures: FrontFigures) -> None:
    times = np.arange(5, dtype=np.int64)
    samples = SamplesAnswer(TWO_KEYS, np.array([0, 2, 5], dtype=np.int64), times, times.astype(np.float64))
    assert request_once(figures, samples) is samples
    request_once(figures, SeriesAnswer(TWO_KEYS, more=False), "series")
    counts = figures.counts()
    assert counts.queries == {("samples", "answered"): 1, ("series", "answered"): 1}
    assert (counts.series, counts.samples) == (4, 5)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("series", "series"),
        ("label_names", "label-names"),
        ("label_values", "label-values"),
        ("samples", "samples"),
        ("cardinality", "cardinality"),
        ("buckets", "buckets"),
    ],
)
def test_each_request_is_counted_by_its_name(figures: FrontFigures, name: str, kind: str) -> None:
    request_once(figures, BucketsAnswer(()), name)
    assert figures.counts().queries == {(kind, "answered"): 1}


def test_an_answer_with_a_warning_is_counted_separately(figures: FrontFigures) -> None:
    empty = np.empty(0, dtype=np.int64)
    terms = TermsAnswer(empty, np.empty(0, dtype=np.uint8), empty, more=False, warnings=("shard 1 recovers",))
    request_once(figures, terms, "label_names")
    assert figures.counts().queries == {("label-names", "warned"): 1}


def test_partitions_of_other_nodes_are_no_warning_of_this_one(figures: FrontFigures) -> None:
    elsewhere = ("this node does not serve partition 1 of 2",)
    queries = FakeQueries(warnings=elsewhere)
    queries.unserved_partitions = elsewhere
    counted = CountedQueries(queries, figures)
    scope, request = QueryScope(1, AnswerMemory(0).lease()), LabelNamesRequest((), None, 10)
    in_loop(counted.label_names(request, scope))
    assert figures.counts().queries == {("label-names", "answered"): 1}
    assert counted.unserved() == elsewhere
    queries.warnings = ("shard 0 recovers", *elsewhere)
    in_loop(counted.label_names(request, scope))
    assert figures.counts().queries == {("label-names", "answered"): 1, ("label-names", "warned"): 1}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (QueryTooLarge("large"), "too-large"),
        (QueryTimedOut("late"), "timed-out"),
        (AnswerTooLarge("larger than all memory"), "too-large"),
        (AnswerMemoryFull("others have it"), "no-memory"),
        (asyncio.CancelledError(), "cancelled"),
        (QueryUnavailable("none"), "unavailable"),
        (InvalidMatcher("wrong"), "refused"),
        (Retryable("other"), "failed"),
        (ValueError("wrong"), "failed"),
    ],
)
def test_an_error_is_counted_and_raised(figures: FrontFigures, error: BaseException, outcome: str) -> None:
    with pytest.raises(type(error)) as raised:
        request_once(figures, error)
    assert raised.value is error
    assert figures.counts().queries == {("samples", outcome): 1}


def test_a_cached_list_is_counted_without_a_request(figures: FrontFigures) -> None:
    queries_of_shards = FakeQueries()
    queries = CountedQueries(queries_of_shards, figures)
    queries.answered_from_cache(LabelNamesRequest((), None, 10))
    queries.answered_from_cache(LabelValuesRequest("job", (), None, 10))
    queries.answered_from_cache(LabelValuesRequest("instance", (), None, 10))
    assert figures.counts().queries == {("label-names", "kept"): 1, ("label-values", "kept"): 2}
    assert len(queries_of_shards.cached_answers) == 3


def test_the_version_of_lists_is_that_of_the_shards(figures: FrontFigures) -> None:
    version = IndexVersion((1, 2), 0, 9)
    assert CountedQueries(FakeQueries(version=version), figures).index_version() is version
    assert CountedQueries(FakeQueries(), figures).index_version() is None


def test_the_memory_of_answers_is_as_of_the_scrape(clock: ManualClock) -> None:
    memory = AnswerMemory(100)
    figures = FrontFigures(clock, memory)

    def memory_metrics() -> tuple[float, float]:
        families = {family.name: family for family in node_families(NodeState(), 0.0, figures, None, clock.now_ms())}
        names = ("strandline_answer_memory_bytes", "strandline_answer_memory_limit_bytes")
        used, limit = (families[name].samples[0].value for name in names)
        return used, limit

    lease = memory.lease()
    lease.grow(70)
    assert memory_metrics() == (70, 100)
    lease.release()
    memory.limit = 50
    assert memory_metrics() == (0, 50)
