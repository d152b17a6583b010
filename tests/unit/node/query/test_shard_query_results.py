"""Results of queries to several shards: counted series, memory while answers are merged, and the index version."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from strandline.index.cardinality import ValueCardinality
from strandline.node.query.answer_memory import AnswerMemoryFull, MemoryLease
from strandline.node.query.answers import (
    Answer,
    CardinalityAnswer,
    SeriesHashesAnswer,
    TermsAnswer,
)
from strandline.node.query.index_version import IndexVersion
from strandline.node.query.link_socket import SMALL_MESSAGE
from strandline.node.query.queries import (
    QueryScope,
    QueryTimedOut,
    QueryTooLarge,
    TooManySamples,
    TooManySeries,
)
from strandline.node.query.shard_requests import (
    CardinalityRequest,
    LabelNamesRequest,
    SamplesRequest,
    SeriesHashesRequest,
    ShardRequest,
)
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.time_range import TimeRange
from support.links import Loop
from support.shard_clients import EVERY, AnswerRequest, Client, Node, answering, series

pytestmark = pytest.mark.unit


@pytest.fixture
def loop() -> Iterator[Loop]:
    with closing(Loop()) as created:
        yield created


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

    def test_the_error_has_a_lower_bound_of_the_samples_of_all_shards(self, loop: Loop) -> None:
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
