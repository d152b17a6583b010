"""Which look-ups the event loop asks itself, and what becomes of those that are late or fail."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from strandline.clock import SystemClock
from strandline.node.http.api.quick_lookups import QuickLookup, QuickLookups, suits
from strandline.node.http.errors import BadParameter, Refused
from strandline.node.http.whole import Whole
from strandline.node.http.whole_requests import Headers, WholeRequest
from strandline.node.http.working import Workers
from strandline.node.query.answers import TermsAnswer
from strandline.node.query.asks import LABEL_NAMES, SERIES
from strandline.node.query.queries import Cancellation, QueryTimedOut, QueryUnavailable
from strandline.node.query.quick import Question
from support.http_servers import in_loop

pytestmark = pytest.mark.unit

CLOCK = SystemClock()


@dataclass
class FakeComing:
    """An answer that comes when the test says so."""

    cancellation: Cancellation
    came: Callable[[], None]
    short: bool = True
    failure: Exception | None = None
    abandoned: bool = False

    def is_short(self) -> bool:
        return self.short

    def answer(self) -> TermsAnswer:
        self.cancellation.check()
        if self.failure is not None:
            raise self.failure
        data = np.frombuffer(b"job", dtype=np.uint8)
        return TermsAnswer(np.array([0, 3]), data, np.array([1]), more=False)

    def look_at_time(self) -> None:
        if not self.cancellation.seconds_left:
            self.short = False
            self.came()

    def abandon(self) -> None:
        self.abandoned = True


@dataclass
class FakeQuickQueries:
    """`QuickQueries` that keep nothing."""

    can: bool = True
    asked: list[tuple[Question, FakeComing]] = field(default_factory=list)

    def edition(self) -> None:
        """None is told."""

    def kept(self, _question: Question) -> None:
        raise AssertionError

    def begin_at_once(
        self, question: Question, cancellation: Cancellation, came: Callable[[], None]
    ) -> FakeComing | None:
        coming = FakeComing(cancellation, came)
        self.asked.append((question, coming))
        return coming if self.can else None

    def fetch(self, _question: Question, coming: FakeComing) -> TermsAnswer:
        return coming.answer()


@pytest.fixture
def queries() -> FakeQuickQueries:
    return FakeQuickQueries()


def lookups(queries: FakeQuickQueries, *, most: int = 8, is_open: bool = True) -> QuickLookups:
    workers = Workers(CLOCK, concurrency=1, timeout_s=30.0)
    return QuickLookups(queries, workers, 1000, is_open=is_open, most=most)


def request(query: str = "", *, method: str = "GET", body: bytes = b"", **fields: str) -> WholeRequest:
    return WholeRequest(method, "/", query, Headers(fields), body)


def begun(made: QuickLookups, asked: WholeRequest, kind: str = LABEL_NAMES) -> QuickLookup | None:
    lookup = made.handler(kind)(asked, "")
    assert lookup is None or isinstance(lookup, QuickLookup)
    return lookup


@pytest.mark.parametrize(
    ("query", "quick"),
    [
        ("", True),
        ('match[]={a="b"}', True),
        ('match[]={a="' + 1900 * "b" + '"}', True),
        ('match[]={a="' + 2100 * "b" + '"}', False),
        ('match[]={a=~"b.*"}', True),
        ('match[]={a=~"' + 250 * "b" + '"}', False),
        ("match[]=%7Ba%3D%7E%22" + 250 * "b" + "%22%7D", False),
    ],
)
def test_what_takes_long_to_read_is_left_to_a_thread(queries: FakeQuickQueries, query: str, quick: bool) -> None:
    async def test() -> None:
        assert (begun(lookups(queries), request(query)) is not None) is quick
        form = request(method="POST", body=query.encode(), **{"content-type": "application/x-www-form-urlencoded"})
        assert suits(form) is quick
        assert (begun(lookups(queries), form) is not None) is quick

    in_loop(test())


def test_before_kernels_are_loaded_threads_ask(queries: FakeQuickQueries) -> None:
    assert begun(lookups(queries, is_open=False), request()) is None
    assert queries.asked == []


def test_where_it_would_have_to_wait_threads_ask(queries: FakeQuickQueries) -> None:
    queries.can = False
    assert begun(lookups(queries, most=1), request()) is None
    assert begun(lookups(queries, most=1), request()) is None
    assert len(queries.asked) == 2, "one that was not asked takes nobody's place"


def test_what_is_wrong_is_for_the_ordinary_handler_to_say(queries: FakeQuickQueries) -> None:
    with pytest.raises(BadParameter):
        begun(lookups(queries), request("start=x"))
    with pytest.raises(BadParameter):
        begun(lookups(queries), request(), SERIES)
    with pytest.raises(Refused, match="compressed"):
        begun(lookups(queries), request(method="POST", **{"content-encoding": "gzip"}))


def test_only_so_many_are_under_way_at_a_time(queries: FakeQuickQueries) -> None:
    async def test() -> None:
        made = lookups(queries, most=2)
        first, second = begun(made, request()), begun(made, request())
        assert first is not None
        assert second is not None
        assert begun(made, request()) is None
        queries.asked[0][1].came()
        third = begun(made, request())
        assert third is not None
        assert begun(made, request()) is None
        second.abandon()
        assert queries.asked[1][1].abandoned
        assert begun(made, request()) is not None

    in_loop(test())


def test_a_short_answer_is_taken(queries: FakeQuickQueries) -> None:
    async def test() -> None:
        lookup, here = begun(lookups(queries), request()), asyncio.Event()
        assert lookup is not None
        lookup.when_here(here.set)
        queries.asked[0][1].came()
        assert here.is_set()
        assert lookup.take() == Whole(b'{"status":"success","data":["job"]}', is_compressed=False)

    in_loop(test())


def test_an_error_is_raised_where_errors_are_answered(queries: FakeQuickQueries) -> None:
    async def test() -> None:
        lookup = begun(lookups(queries), request())
        assert lookup is not None
        queries.asked[0][1].failure = QueryUnavailable("nobody is there")
        queries.asked[0][1].came()
        assert lookup.take() is None
        with pytest.raises(QueryUnavailable, match="nobody is there"):
            lookup.fetched(Cancellation(CLOCK, 30.0))

    in_loop(test())


def test_a_long_answer_is_fetched_by_a_thread(queries: FakeQuickQueries) -> None:
    async def test() -> None:
        lookup = begun(lookups(queries), request())
        assert lookup is not None
        queries.asked[0][1].short = False
        queries.asked[0][1].came()
        assert lookup.take() is None
        assert b"".join(lookup.fetched(Cancellation(CLOCK, 30.0)).data) == b'["job"]'

    in_loop(test())


def test_one_that_is_late_is_not_waited_for(queries: FakeQuickQueries) -> None:
    async def test() -> None:
        lookup, here = begun(lookups(queries), request("timeout=10ms")), asyncio.Event()
        assert lookup is not None
        lookup.when_here(here.set)
        await here.wait()
        assert lookup.take() is None
        with pytest.raises(QueryTimedOut):
            lookup.fetched(Cancellation(CLOCK, 30.0))

    in_loop(test())
