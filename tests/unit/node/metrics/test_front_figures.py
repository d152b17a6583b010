"""What the HTTP front counts: requests, by a middleware, and questions to the shards."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientError, web
from aiohttp.test_utils import TestClient, TestServer

from strandline.clock import ManualClock
from strandline.errors import Retryable
from strandline.index.matchers import InvalidMatcher
from strandline.node.metrics.counted_queries import CountedQueries
from strandline.node.metrics.front_figures import BOUNDS_S, FrontFigures
from strandline.node.metrics.observing import observing
from strandline.node.query.answers import BucketsAnswer, KeyBytes, SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.queries import (
    Cancellation,
    QueryCancelled,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def figures(clock: ManualClock) -> FrontFigures:
    return FrontFigures(clock)


# Counting.


def test_a_request_counts_for_its_handler_and_code_and_in_the_bucket_of_its_duration(figures: FrontFigures) -> None:
    figures.observe("/a", 200, 0.005)
    figures.observe("/a", 200, 0.0051)
    figures.observe("/a", 503, 61.0)
    figures.observe("/b", 200, 0.0)
    counts = figures.counts()
    assert counts.requests == {("/a", "200"): 2, ("/a", "503"): 1, ("/b", "200"): 1}
    seconds = counts.seconds["/a"]
    assert list(seconds.at_most) == [1] + [2] * (len(BOUNDS_S) - 1), "at most, not below"
    assert (seconds.count, seconds.total) == (3, pytest.approx(61.0101))
    assert list(counts.seconds["/b"].at_most) == [1] * len(BOUNDS_S)


def test_bounds_rise_and_end_before_the_infinite() -> None:
    assert list(BOUNDS_S) == sorted(set(BOUNDS_S))
    assert BOUNDS_S[0] > 0
    assert not math.isinf(BOUNDS_S[-1])


def test_what_many_threads_count_is_all_there(figures: FrontFigures) -> None:
    def count(_: int) -> None:
        for _ in range(500):
            with figures.in_flight():
                figures.observe("/a", 200, 0.25)
            figures.asked("samples", "answered", series=1, samples=2)
            figures.watchdog_fed()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(8)))
    counts = figures.counts()
    assert counts.requests == {("/a", "200"): 4_000}
    assert (counts.seconds["/a"].count, counts.seconds["/a"].total) == (4_000, 1_000.0)
    assert (counts.queries, counts.series, counts.samples) == ({("samples", "answered"): 4_000}, 4_000, 8_000)
    assert (counts.in_flight, counts.watchdog_feeds) == (0, 4_000)


def test_counts_that_were_taken_do_not_change(figures: FrontFigures) -> None:
    figures.observe("/a", 200, 1)
    before = figures.counts()
    figures.observe("/a", 200, 1)
    figures.asked("series", "answered")
    assert before.requests == {("/a", "200"): 1}
    assert before.seconds["/a"].count == 1
    assert before.queries == {}


# The middleware.


Ask = Callable[[TestClient[web.Request, web.Application]], Awaitable[None]]


def serve(figures: FrontFigures, clock: ManualClock, ask: Ask) -> None:
    """Answer what is asked of a small server behind the middleware."""

    async def answer(request: web.Request) -> web.StreamResponse:
        clock.sleep(2)
        assert figures.counts().in_flight == 1
        match request.match_info["name"]:
            case "teapot":
                return web.Response(status=418)
            case "moved":
                raise web.HTTPFound("/elsewhere")
            case "gone":
                raise ConnectionResetError
            case "wrong":
                raise ValueError("wrong")
        return web.Response(text="fine")

    async def run() -> None:
        app = web.Application(middlewares=[observing(figures, clock)])
        app.router.add_get("/label/{name}/values", answer)
        async with TestClient(TestServer(app)) as client:
            await ask(client)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "code"), [("any", "200"), ("teapot", "418"), ("moved", "302"), ("wrong", "500"), ("gone", "499")]
)
def test_a_request_is_counted_with_the_code_of_its_answer(
    figures: FrontFigures, clock: ManualClock, name: str, code: str
) -> None:
    async def ask(client: TestClient[web.Request, web.Application]) -> None:
        with suppress(ClientError):
            await client.get(f"/label/{name}/values", allow_redirects=False)

    serve(figures, clock, ask)
    counts = figures.counts()
    assert set(counts.requests) == {("/label/{name}/values", code)}
    assert counts.seconds["/label/{name}/values"].total == pytest.approx(2 * sum(counts.requests.values()))
    assert counts.in_flight == 0


def test_paths_that_clients_make_up_are_one_handler(figures: FrontFigures, clock: ManualClock) -> None:
    async def ask(client: TestClient[web.Request, web.Application]) -> None:
        for number in range(20):
            await client.get(f"/made/up/{number}")
            await client.get(f"/label/{number}/values")
        await client.post("/label/a/values")

    serve(figures, clock, ask)
    assert figures.counts().requests == {
        ("other", "404"): 20,
        ("/label/{name}/values", "200"): 20,
        ("other", "405"): 1,
    }


def test_a_client_that_does_not_wait_is_counted_as_gone(figures: FrontFigures, clock: ManualClock) -> None:
    async def run() -> None:
        begun = asyncio.Event()

        async def waits(_: web.Request) -> web.StreamResponse:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        app = web.Application(middlewares=[observing(figures, clock)])
        app.router.add_get("/slow", waits)
        async with TestClient(TestServer(app)) as client:
            task = asyncio.create_task(client.get("/slow").__aenter__())
            await begun.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    # Whether the handler is cancelled at once or at the server's end: it was not answered.
    assert figures.counts().requests == {("/slow", "499"): 1}


# Questions.


TWO_KEYS = KeyBytes(np.array([0, 1, 2], dtype=np.int64), np.zeros(2, dtype=np.uint8))


class Answering:
    """Questions that are all answered in the same way."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __getattr__(self, name: str) -> Callable[[Any, Cancellation], Any]:
        def answered(_ask: Any, _cancellation: Cancellation) -> Any:
            if isinstance(self._answer, BaseException):
                raise self._answer
            return self._answer

        return answered


def ask_once(figures: FrontFigures, clock: ManualClock, answer: Any, name: str = "samples") -> Any:
    queries: Any = CountedQueries(Answering(answer), figures)  # type: ignore[arg-type]  # answers to anything
    return getattr(queries, name)(None, Cancellation(clock, 1))


def test_series_and_samples_of_an_answer_are_counted(figures: FrontFigures, clock: ManualClock) -> None:
    times = np.arange(5, dtype=np.int64)
    samples = SamplesAnswer(TWO_KEYS, np.array([0, 2, 5], dtype=np.int64), times, times.astype(np.float64))
    assert ask_once(figures, clock, samples) is samples
    ask_once(figures, clock, SeriesAnswer(TWO_KEYS, more=False), "series")
    counts = figures.counts()
    assert counts.queries == {("samples", "answered"): 1, ("series", "answered"): 1}
    assert (counts.series, counts.samples) == (4, 5)
    assert counts.express_queries == 0


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("series", "series"),
        ("label_names", "label-names"),
        ("label_values", "label-values"),
        ("samples", "samples"),
        ("cardinality", "cardinality"),
        ("buckets", "buckets"),
    ],
)
def test_each_question_is_counted_by_its_name(figures: FrontFigures, clock: ManualClock, name: str, ask: str) -> None:
    ask_once(figures, clock, BucketsAnswer(()), name)
    assert figures.counts().queries == {(ask, "answered"): 1}


def test_an_answer_with_a_warning_is_counted_apart(figures: FrontFigures, clock: ManualClock) -> None:
    nothing = np.empty(0, dtype=np.int64)
    terms = TermsAnswer(nothing, np.empty(0, dtype=np.uint8), nothing, more=False, warnings=("shard 1 recovers",))
    ask_once(figures, clock, terms, "label_names")
    assert figures.counts().queries == {("label-names", "warned"): 1}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (QueryTooLarge("large"), "too-large"),
        (QueryTimedOut("late"), "timed-out"),
        (QueryCancelled("gone"), "cancelled"),
        (QueryUnavailable("none"), "unavailable"),
        (InvalidMatcher("wrong"), "refused"),
        (Retryable("other"), "failed"),
        (ValueError("wrong"), "failed"),
    ],
)
def test_what_went_wrong_is_counted_and_raised(
    figures: FrontFigures, clock: ManualClock, error: Exception, outcome: str
) -> None:
    with pytest.raises(type(error)) as raised:
        ask_once(figures, clock, error)
    assert raised.value is error
    assert figures.counts().queries == {("samples", outcome): 1}
