"""Queries to several shards: fan-out, concurrency, timeouts, and answers without some of the shards."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from strandline.errors import StrandlineError
from strandline.index.cardinality import ValueCardinality
from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp
from strandline.node.query.answer_memory import AnswerMemory, AnswerMemoryFull, MemoryLease
from strandline.node.query.answer_messages import QueryFailed
from strandline.node.query.answers import (
    Answer,
    BucketsAnswer,
    CardinalityAnswer,
    SeriesAnswer,
    SeriesHashesAnswer,
    TermsAnswer,
)
from strandline.node.query.frames import decode_frame
from strandline.node.query.index_version import IndexVersion
from strandline.node.query.link_socket import SMALL_MESSAGE
from strandline.node.query.queries import (
    QueryScope,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
    TooManySamples,
    TooManySeries,
)
from strandline.node.query.request_messages import request_of
from strandline.node.query.shard_queries import ShardQueries
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    LabelNamesRequest,
    SamplesRequest,
    SeriesHashesRequest,
    SeriesRequest,
    ShardRequest,
)
from strandline.node.query.unresponsive_store import unresponsive_store_error
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Status
from strandline.node.shard.store_health import StoreFigures
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.node.workers import Workers
from strandline.time_range import TimeRange
from support.links import Loop
from support.packed_lookups import PackedLookup
from support.query_worlds import labels_of

pytestmark = pytest.mark.unit

BUCKETS = BucketsRequest(None, 5)
LOOKUP = SeriesRequest(((Matcher("job", MatchOp.EQUAL, "a"),),), None, 5)
EVERY = SeriesRequest(((Matcher("job", MatchOp.MATCH, ".+"),),), None, 5)
AnswerRequest = Callable[[ShardRequest, MemoryLease], Awaitable[Answer]]


def series(*values: str) -> SeriesAnswer:
    keys = [encode_part_key({"job": value}) for value in values]
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    return SeriesAnswer(KeyBytes(offsets, np.frombuffer(b"".join(keys), dtype=np.uint8)), more=False)


def jobs(answer: Answer) -> list[str]:
    assert isinstance(answer, SeriesAnswer)
    return [dict(labels)["job"] for labels in labels_of(answer.keys)]


def answering(answer: Answer) -> AnswerRequest:
    async def answer_request(_request: ShardRequest, _memory: MemoryLease) -> Answer:
        return answer

    return answer_request


def raising(error: Exception) -> AnswerRequest:
    async def answer_request(_request: ShardRequest, _memory: MemoryLease) -> Answer:
        raise error

    return answer_request


def about(seconds: float) -> Any:
    """Slightly less than the timeout, because a little time has passed."""
    return pytest.approx(seconds, abs=1)


class HeldAnswer:
    """An answer that waits until the test sets `over`."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.begun, self.over, self.cancelled = answer, asyncio.Event(), asyncio.Event(), 0

    async def __call__(self, _request: ShardRequest, _memory: MemoryLease) -> Answer:
        self.begun.set()
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.answer


class Client:
    """A `ShardClient` with the answers of a test."""

    def __init__(
        self, answer_request: AnswerRequest, lookup_answer: Answer | None = None, version: IndexVersion | None = None
    ) -> None:
        self.answer_request, self.lookup_answer, self.version = answer_request, lookup_answer, version
        self.requests: list[tuple[ShardRequest, float]] = []
        self.lookups: list[PackedLookup] = []

    async def look_up(self, frame: bytes, _memory: MemoryLease) -> Answer | None:
        self.lookups.append(PackedLookup.of(frame))
        return self.lookup_answer

    async def request(self, frame: bytes, memory: MemoryLease) -> Answer:
        self.requests.append(request_of(decode_frame(bytearray(frame))))
        return await self.answer_request(self.requests[-1][0], memory)

    def index_version(self) -> IndexVersion | None:
        return self.version


class Node:
    """Shards from 0 on, and the queries to them."""

    def __init__(self, loop: Loop, *clients: Client, concurrency: int = 4, memory: int = 1 << 30) -> None:
        self.loop, self.memory, self.workers = loop, AnswerMemory(memory), Workers(1)
        self.clients = dict(enumerate(clients))
        self.statuses = tuple(ShardProcessStatus(shard, ProcessState.RUNNING) for shard in self.clients)
        self.topic_partitions: int | None = len(clients)
        self.queries = ShardQueries(lambda: self.clients, self, self.workers, concurrency=concurrency)

    def partitions(self) -> int | None:
        return self.topic_partitions

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        return self.statuses

    def scope(self, seconds: float = 30.0) -> QueryScope:
        return QueryScope(seconds, self.memory.lease())

    def series(self, request: SeriesRequest = EVERY, seconds: float = 30.0) -> SeriesAnswer:
        return self.loop.run(self.queries.series(request, self.scope(seconds)))

    def buckets(self, seconds: float = 30.0) -> BucketsAnswer:
        return self.loop.run(self.queries.buckets(BUCKETS, self.scope(seconds)))


@pytest.fixture
def loop() -> Iterator[Loop]:
    with closing(Loop()) as created:
        yield created


def test_all_shards_get_the_request_with_its_timeout(loop: Loop) -> None:
    node = Node(loop, Client(answering(series("a", "c"))), Client(answering(series("b"))))
    assert jobs(node.series(seconds=7.5)) == ["a", "b", "c"]
    assert [client.requests for client in node.clients.values()] == [[(EVERY, about(7.5))]] * 2
    assert all(client.lookups == [] for client in node.clients.values())


def test_a_declined_lookup_goes_to_the_process_of_that_shard_only(loop: Loop) -> None:
    accepting, declining = Client(answering(series("never")), series("a")), Client(answering(series("b")))
    node = Node(loop, accepting, declining)
    assert jobs(node.series(LOOKUP)) == ["a", "b"]
    assert (accepting.requests, declining.requests) == ([], [(LOOKUP, about(30.0))])
    assert accepting.lookups == declining.lookups == [PackedLookup("series", [[("job", "a")]], limit=5)]


def test_heavy_queries_at_the_limit_do_not_delay_lookups(loop: Loop) -> None:
    async def run() -> None:
        held = HeldAnswer(BucketsAnswer(()))
        node = Node(loop, Client(held, series("a")), concurrency=1)
        heavy = asyncio.ensure_future(node.queries.buckets(BUCKETS, node.scope()))
        await held.begun.wait()
        waiting = asyncio.ensure_future(node.queries.buckets(BUCKETS, node.scope()))
        assert jobs(await node.queries.series(LOOKUP, node.scope())) == ["a"]
        assert len(node.clients[0].requests) == 1, "the other query waits for the semaphore"
        held.over.set()
        await asyncio.gather(heavy, waiting)
        assert len(node.clients[0].requests) == 2

    loop.run(run())


def test_a_declined_lookup_waits_for_the_semaphore(loop: Loop) -> None:
    async def run() -> None:
        held = HeldAnswer(series("a"))
        node = Node(loop, Client(held), concurrency=1)
        first = asyncio.ensure_future(node.queries.series(LOOKUP, node.scope()))
        await held.begun.wait()
        with pytest.raises(QueryTimedOut, match=r"took longer than 0\.02 s"):
            await node.queries.series(LOOKUP, node.scope(0.02))
        assert len(node.clients[0].requests) == 1
        held.over.set()
        assert jobs(await first) == ["a"]
        assert jobs(await node.queries.series(LOOKUP, node.scope())) == ["a"], "the permit was released"

    loop.run(run())


def test_a_new_limit_applies_to_later_queries(loop: Loop) -> None:
    async def run() -> None:
        held = HeldAnswer(BucketsAnswer(()))
        node = Node(loop, Client(held), concurrency=1)
        first = asyncio.ensure_future(node.queries.buckets(BUCKETS, node.scope()))
        await held.begun.wait()
        node.queries.reload(concurrency=1)
        held.begun.clear()
        second = asyncio.ensure_future(node.queries.buckets(BUCKETS, node.scope()))
        await held.begun.wait()
        held.over.set()
        await asyncio.gather(first, second)

    loop.run(run())


def test_a_query_that_times_out_is_cancelled_in_all_shards_and_names_the_timeout(loop: Loop) -> None:
    async def run() -> None:
        held = [HeldAnswer(BucketsAnswer(())), HeldAnswer(BucketsAnswer(()))]
        node = Node(loop, *map(Client, held))
        with pytest.raises(QueryTimedOut, match=r"took longer than 0\.05 s") as caught:
            await node.queries.buckets(BUCKETS, node.scope(0.05))
        assert "query.timeout" in caught.value.remedy
        assert [answer.cancelled for answer in held] == [1, 1]

    loop.run(run())


@pytest.mark.parametrize("shards", [1, 2])
def test_a_query_whose_task_is_cancelled_is_cancelled_in_all_shards(loop: Loop, shards: int) -> None:
    async def run() -> None:
        held = [HeldAnswer(BucketsAnswer(())) for _ in range(shards)]
        node = Node(loop, *map(Client, held), concurrency=1)
        query = asyncio.ensure_future(node.queries.buckets(BUCKETS, node.scope()))
        for answer in held:
            await answer.begun.wait()
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
        assert [answer.cancelled for answer in held] == [1] * shards
        for answer in held:
            answer.over.set()
        await node.queries.buckets(BUCKETS, node.scope())

    loop.run(run())


@pytest.mark.parametrize(
    ("error", "warning"),
    [
        (QueryUnavailable("shard 1 is on fire"), "shard 1 is on fire: the answer lacks its series"),
        (QueryFailed("nobody knows"), "shard 1: nobody knows: the answer lacks its series"),
    ],
    ids=["unavailable", "failed"],
)
def test_an_unavailable_shard_is_a_warning_while_another_answers(loop: Loop, error: Exception, warning: str) -> None:
    node = Node(loop, Client(answering(replace(series("a"), warnings=("own",)))), Client(raising(error)))
    answer = node.series()
    assert (jobs(answer), answer.warnings) == (["a"], ("own", warning))
    alone = Node(loop, Client(raising(QueryUnavailable("shard 0 is gone"))), Client(raising(error)))
    with pytest.raises(QueryUnavailable, match="shard 0 is gone; shard 1"):
        alone.series()


@pytest.mark.parametrize(
    "error",
    [InvalidMatcher("no matcher"), QueryTooLarge("too much"), AnswerMemoryFull("full"), ZeroDivisionError("a bug")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_the_query_cancels_it_in_all_shards(loop: Loop, error: Exception) -> None:
    async def run() -> None:
        held = HeldAnswer(series("a"))

        async def fail_second(_request: ShardRequest, _memory: MemoryLease) -> Answer:
            await held.begun.wait()
            raise error

        node = Node(loop, Client(held), Client(fail_second))
        with pytest.raises(type(error)) as caught:
            await node.queries.series(EVERY, node.scope())
        assert caught.value is error
        assert held.cancelled == 1

    loop.run(run())


def test_an_answer_of_the_wrong_kind_makes_the_shard_unavailable(loop: Loop) -> None:
    node = Node(loop, Client(answering(series("a"))), Client(answering(BucketsAnswer(()))))
    assert node.series().warnings == ("shard 1 sent an answer of the wrong kind: the answer lacks its series",)


def test_a_query_of_a_node_without_shards_is_an_error_that_names_the_cause(loop: Loop) -> None:
    with pytest.raises(QueryUnavailable, match="no shards"):
        Node(loop).series(LOOKUP)


def test_added_and_changed_shards_are_queried(loop: Loop) -> None:
    node = Node(loop, Client(answering(series("a"))))
    assert jobs(node.series()) == ["a"]
    node.clients = {**node.clients, 1: Client(answering(series("b")))}
    assert jobs(node.series()) == ["a", "b"]
    node.statuses = (ShardProcessStatus(0, ProcessState.DOWN, reason="its disk is full"),)
    answer = node.series()
    assert (jobs(answer), answer.warnings) == (
        ["b"],
        ("shard 0 is down (its disk is full): the answer lacks its series",),
    )


def test_every_answer_of_a_node_that_serves_a_part_of_the_dataset_has_a_warning(loop: Loop) -> None:
    """Scenario 47: also for partitions that were only just added."""
    node = Node(loop, Client(answering(series("a"))), Client(answering(series("b"))))
    assert (node.series().warnings, node.queries.unserved()) == ((), ())
    node.topic_partitions = 6
    elsewhere = "this node does not serve partitions 2-5 of 6: the answer lacks the series there"
    assert (node.series().warnings, node.queries.unserved()) == ((elsewhere,), (elsewhere,))
    node.clients[1].answer_request = raising(QueryUnavailable("shard 1 is on fire"))
    assert node.series().warnings == ("shard 1 is on fire: the answer lacks its series", elsewhere)
    node.topic_partitions = None
    assert node.queries.unserved() == (), "the number of partitions is unknown"


class TestUnresponsiveStore:
    """The remedy of a query that waits for a store is not to narrow the query."""

    def error_of_timeout(self, loop: Loop, unanswered_s: float, seconds: float) -> StrandlineError:
        node = Node(loop, Client(answering(series("a"))), Client(HeldAnswer(series("b"))))
        store = StoreFigures("Cassandra at db:9042", unanswered_s)
        report = ShardReport(Status(), ProcessFigures(1, 0.0, 0, 0), store=store)
        node.statuses = (node.statuses[0], replace(node.statuses[1], report=report))
        with pytest.raises((QueryTimedOut, QueryUnavailable)) as caught:
            node.series(seconds=seconds)
        return caught.value

    def test_a_timeout_names_the_shard_and_its_unresponsive_store(self, loop: Loop) -> None:
        error = self.error_of_timeout(loop, 12.0, 0.02)
        assert isinstance(error, QueryUnavailable)
        assert error.message == (
            "shard 1 had no answer within 0.02 s, because its store (Cassandra at db:9042) has not answered for 12 s"
        )
        assert "Narrow" not in str(error)

    def test_a_short_wait_for_the_store_is_not_named_as_the_cause(self, loop: Loop) -> None:
        assert isinstance(self.error_of_timeout(loop, 0.9, 0.02), QueryTimedOut)

    @pytest.mark.parametrize(("unanswered_s", "is_named"), [(15.0, True), (14.9, False)])
    def test_the_store_is_named_from_a_wait_of_half_the_timeout_on(self, unanswered_s: float, is_named: bool) -> None:
        error = unresponsive_store_error(3, StoreFigures("SQLite", unanswered_s), 30.0)
        assert (error is not None) is is_named


def hashes(*words: int, of: int | None = None) -> SeriesHashesAnswer:
    low = np.array(words, dtype=np.uint64)
    return SeriesHashesAnswer(of or len(words), np.arange(len(words), dtype=np.uint32), low, low)


class TestCardinality:
    TOP = tuple(ValueCardinality("job", str(number), 10 - number) for number in range(3))

    def client(self, listed: SeriesHashesAnswer) -> Client:
        async def answer_request(request: ShardRequest, _memory: MemoryLease) -> Answer:
            return listed if isinstance(request, SeriesHashesRequest) else CardinalityAnswer(5, (), *(self.TOP,) * 3)

        return Client(answer_request)

    def cardinality(self, loop: Loop, *clients: Client, memory: int = 1 << 30) -> CardinalityAnswer:
        node = Node(loop, *clients, memory=memory)
        return loop.run(node.queries.cardinality(CardinalityRequest((), None, 2), node.scope()))

    def test_series_that_a_higher_shard_counts_are_left_out(self, loop: Loop) -> None:
        first_shard, second_shard = self.client(hashes(7, 8, 9)), self.client(hashes(1, 8, 9))
        assert self.cardinality(loop, first_shard, second_shard).top_pairs_by_series == (
            ValueCardinality("job", "0", 20),
            ValueCardinality("job", "1", 18),
        )
        requests = [[request for request, _ in client.requests] for client in (first_shard, second_shard)]
        assert [kind for some in requests for kind in map(type, some)] == [SeriesHashesRequest, CardinalityRequest] * 2
        left_out = [np.frombuffer(some[1].without, dtype="<u4").tolist() for some in requests]  # type: ignore[union-attr]
        assert left_out == [[1, 2], []]
        assert [some[1].limit for some in requests] == [20, 20]  # type: ignore[union-attr]

    def test_a_single_shard_gets_one_request_and_lists_no_hashes(self, loop: Loop) -> None:
        alone = self.client(hashes())
        self.cardinality(loop, alone)
        assert [request for request, _ in alone.requests] == [CardinalityRequest((), None, 2)]

    def test_the_hashes_that_shards_list_share_a_part_of_the_memory(self, loop: Loop) -> None:
        first_shard, second_shard = self.client(hashes(7)), self.client(hashes(7))
        self.cardinality(loop, first_shard, second_shard, memory=1600)
        (first, _), (second, _) = first_shard.requests
        assert isinstance(first, SeriesHashesRequest)
        assert isinstance(second, CardinalityRequest)
        assert (first.limit, second.listed_bytes) == (5, 100)

    def test_more_series_than_can_be_compared_are_estimated(self, loop: Loop) -> None:
        answer = self.cardinality(loop, self.client(hashes(1, 2, of=50)), self.client(hashes(1, 3, of=40)))
        assert (answer.series, answer.estimated_series) == (60, True)


class TestRefusedSeries:
    """A shard with too many series refuses the query, and the error has the number of series of all shards."""

    REQUEST = SamplesRequest(EVERY.selectors[0], TimeRange(0, 9), 3, 9)

    def client(self, refusal: Exception, counted: Exception | Answer) -> Client:
        async def answer_request(request: ShardRequest, _memory: MemoryLease) -> Answer:
            outcome = counted if isinstance(request, SeriesHashesRequest) else refusal
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return Client(answer_request)

    def refusal(self, loop: Loop, *clients: Client) -> str:
        node = Node(loop, *clients)
        with pytest.raises(QueryTooLarge) as caught:
            loop.run(node.queries.samples(self.REQUEST, node.scope()))
        return caught.value.message

    def test_the_series_of_all_shards_are_counted_once(self, loop: Loop) -> None:
        first_shard = self.client(TooManySeries(4, 3), hashes(1, 2, 3, 4))
        second_shard = self.client(TooManySeries(5, 3), hashes(3, 4, 5, 6, 7))
        assert "matches 7 series, and a query may read samples of 3" in self.refusal(loop, first_shard, second_shard)

    def test_a_shard_that_timed_out_counts_with_its_lower_bound(self, loop: Loop) -> None:
        first_shard, second_shard = (self.client(TooManySeries(4, 3), QueryTimedOut("late")) for _ in range(2))
        assert "matches at least 4 series" in self.refusal(loop, first_shard, second_shard)

    def test_an_estimate_is_marked_in_the_error(self, loop: Loop) -> None:
        first_shard, second_shard = (
            self.client(TooManySeries(40, 3), hashes(*words, of=40)) for words in ((1, 2), (3, 4))
        )
        assert "matches about 80 series" in self.refusal(loop, first_shard, second_shard)

    def test_a_single_shards_count_is_used(self, loop: Loop) -> None:
        alone = self.client(TooManySeries(4, 3), QueryTimedOut("late"))
        assert "matches 4 series" in self.refusal(loop, alone)
        assert len(alone.requests) == 1

    def test_samples_of_one_shard_are_at_least_those_of_all(self, loop: Loop) -> None:
        first_shard, second_shard = (self.client(TooManySamples(10, 9), hashes()) for _ in range(2))
        assert "reads at least 10 samples, and 9 are allowed" in self.refusal(loop, first_shard, second_shard)
        assert "reads 10 samples" in self.refusal(loop, self.client(TooManySamples(10, 9), hashes()))


def long_terms(prefix: str) -> TermsAnswer:
    texts = [f"{prefix}{number:06}".encode() for number in range(SMALL_MESSAGE // 4)]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    data = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return TermsAnswer(offsets, data, np.ones(len(texts), dtype=np.int64), more=False)


class TestMemoryOfMerging:
    """Long answers take twice their memory while they are merged."""

    SIZE = 1 << 20

    def counted(self, answer: Answer) -> AnswerRequest:
        async def answer_request(_request: ShardRequest, memory: MemoryLease) -> Answer:
            memory.grow(self.SIZE)
            return answer

        return answer_request

    def label_names(self, node: Node, scope: QueryScope) -> TermsAnswer:
        return node.loop.run(node.queries.label_names(LabelNamesRequest((), None, 10**6), scope))

    def test_long_answers_are_merged_in_a_thread_and_only_the_result_keeps_memory(
        self, loop: Loop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        node = Node(loop, Client(self.counted(long_terms("a"))), Client(self.counted(long_terms("b"))))
        used_while_merging = []
        run = node.workers.run

        async def watched(work: Callable[[], Any]) -> Any:
            used_while_merging.append(node.memory.used)
            return await run(work)

        monkeypatch.setattr(node.workers, "run", watched)
        scope = node.scope()
        assert len(self.label_names(node, scope)) == 2 * (SMALL_MESSAGE // 4)
        assert used_while_merging == [4 * self.SIZE]
        assert node.memory.used == scope.memory.held == 2 * self.SIZE
        scope.memory.release()
        assert node.memory.used == 0

    def test_without_memory_for_the_result_the_query_is_refused(self, loop: Loop) -> None:
        clients = [Client(self.counted(long_terms(prefix))) for prefix in "ab"]
        node = Node(loop, *clients, memory=5 * self.SIZE)
        other, scope = node.memory.lease(), node.scope()
        other.grow(2 * self.SIZE)
        with pytest.raises(AnswerMemoryFull):
            self.label_names(node, scope)
        scope.memory.release()
        other.release()
        assert len(self.label_names(node, node.scope())) == 2 * (SMALL_MESSAGE // 4)

    def test_a_single_answer_is_returned_without_a_merge(self, loop: Loop) -> None:
        answer = long_terms("a")
        node = Node(loop, Client(self.counted(answer)), memory=self.SIZE)
        scope = node.scope()
        assert self.label_names(node, scope) is answer
        assert scope.memory.held == self.SIZE


class TestIndexVersion:
    ONE, TWO = IndexVersion((1,), 10, 20), IndexVersion((2,), 15, 30)

    def test_the_version_joins_those_of_all_shards(self, loop: Loop) -> None:
        clients = [Client(answering(series()), version=version) for version in (self.ONE, self.TWO)]
        assert Node(loop, *clients).queries.index_version() == IndexVersion((1, 2), 15, 20)

    def test_the_version_changes_when_the_topic_has_partitions_that_the_node_does_not_serve(self, loop: Loop) -> None:
        """A cached list contains the warning."""
        node = Node(loop, *[Client(answering(series()), version=version) for version in (self.ONE, self.TWO)])
        for partitions, numbers in ((2, (1, 2)), (3, (1, 2, 3)), (4, (1, 2, 4))):
            node.topic_partitions = partitions
            assert node.queries.index_version() == IndexVersion(numbers, 15, 20)

    def test_an_unknown_version_or_an_unavailable_shard_means_no_version(self, loop: Loop) -> None:
        clients = [Client(answering(series()), version=version) for version in (self.ONE, self.TWO)]
        node = Node(loop, *clients)
        clients[1].version = None
        assert node.queries.index_version() is None
        clients[1].version = self.TWO
        node.statuses = (ShardProcessStatus(0, ProcessState.WAITING), node.statuses[1])
        assert node.queries.index_version() is None
        assert Node(loop).queries.index_version() is None
