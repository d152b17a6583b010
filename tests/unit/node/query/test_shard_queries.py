"""Queries to several shards: fan-out, concurrency, timeouts, and answers without some of the shards."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from strandline.errors import StrandlineError
from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp
from strandline.node.query.answer_memory import AnswerMemoryFull, MemoryLease
from strandline.node.query.answer_messages import QueryFailed
from strandline.node.query.answers import (
    Answer,
    BucketsAnswer,
    SeriesAnswer,
)
from strandline.node.query.queries import (
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
)
from strandline.node.query.shard_requests import (
    SeriesRequest,
    ShardRequest,
)
from strandline.node.query.unresponsive_store import unresponsive_store_error
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Status
from strandline.node.shard.store_health import StoreFigures
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from support.links import Loop
from support.packed_lookups import PackedLookup
from support.query_worlds import labels_of
from support.shard_clients import BUCKETS, EVERY, Client, HeldAnswer, Node, answering, raising, series

pytestmark = pytest.mark.unit

LOOKUP = SeriesRequest(((Matcher("job", MatchOp.EQUAL, "a"),),), None, 5)


def jobs(answer: Answer) -> list[str]:
    assert isinstance(answer, SeriesAnswer)
    return [dict(labels)["job"] for labels in labels_of(answer.keys)]


def about(seconds: float) -> Any:
    """Slightly less than the timeout, because a little time has passed."""
    return pytest.approx(seconds, abs=1)


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
