"""PromQL over the shards of a node has the same result as over all samples in one place: for any number of shards, any
place of the samples, and any partition of a series.
"""

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.clock import wait_until
from strandline.node.query import fragment_answers, shard_answers
from strandline.node.query.answers import Answer
from strandline.node.query.fair_semaphore import FairSemaphore
from strandline.node.query.queries import (
    Cancellation,
    EvaluationLimits,
    QueryCancelled,
    TooManySamples,
    TooManySeries,
)
from strandline.node.query.shard_requests import EvaluateRequest
from strandline.promql.engine import prepare
from strandline.promql.errors import EvaluationError
from strandline.promql.evaluation.fragment_rows import fragment_rows
from strandline.promql.local import LocalEngine
from strandline.promql.plan.fragments import Fragment
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.values import F64Matrix, Samples
from support.links import CLOCK, WAIT_S
from support.node_evaluation import evaluate_on_node, local_engine, same, series_of
from support.query_worlds import NodeWorld, node_world
from support.shard_world import HOUR, MINUTE

pytestmark = pytest.mark.contract

QUERIES = (
    "m0",
    'm1{name=~"s[0-4]"} offset 7m',
    "m0[20m]",
    '{__name__=~"m.*"} > 10',
    "rate(m0[15m])",
    "sum(rate(m0[15m]))",
    "sum by (name) (m1)",
    "avg without (name) (m0 * 2)",
    "min(m0)",
    "max by (name) (-m1)",
    "stddev(m0)",
    "count by (__name__) ({__name__=~'m.*'})",
    "topk(2, m0)",
    "bottomk by (name) (1, {__name__=~'m.*'})",
    "quantile(0.3, m1)",
    'count_values("v", round(m0))',
    "m0 + on (name) m1",
    "max_over_time(sum(m0)[30m:5m])",
    "quantile_over_time(scalar(m0{name='s0'}) / 100, m1[20m])",
    "predict_linear(m0[20m] offset 10m, 600)",
    "absent(m0{name='nobody'}) or absent_over_time(m9[5m])",
    "timestamp(m0) - time()",
    "last_over_time(m0[10m] @ end())",
    "-m0",
    "rate({__name__='m0'}[15m]) > bool 0",
)


@pytest.fixture(
    scope="module", params=[(1, False), (2, True), (5, False)], ids=["1 shard", "2 linked shards", "5 shards"]
)
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeWorld]:
    """Series in any shard, some in several; stored, closed and in memory."""
    shards, linked = request.param
    draw = random.Random(shards)  # noqa: S311 - the same each time
    with node_world(tmp_path_factory.mktemp("node"), shards=shards, linked=linked) as made:
        for hour in range(3):
            for world in made.worlds:
                now = world.clock.now_ms()
                world.produce(
                    *(
                        (f"m{draw.randrange(2)}", f"s{draw.randrange(9)}", now + minute * MINUTE, _value(draw))
                        for minute in range(0, 50, 2)
                        for _ in range(3)
                    )
                )
                world.settle()
                if hour < 2:
                    world.pass_hours(1)
        yield made


def _value(draw: random.Random) -> float:
    return draw.choice([float("nan"), float("inf"), 0.0, *(draw.uniform(-50, 100) for _ in range(20))])


@pytest.fixture(scope="module")
def whole(node: NodeWorld) -> LocalEngine:
    """The same samples, with complete series."""
    return local_engine(node)


@pytest.mark.parametrize("text", QUERIES)
def test_answers_do_not_depend_on_where_samples_are(node: NodeWorld, whole: LocalEngine, text: str) -> None:
    end = node.worlds[0].clock.now_ms()
    moments = [QueryTimes.instant(end - 90 * MINUTE), QueryTimes.instant(end)]
    if not text.endswith("]"):
        moments.append(QueryTimes(end - 3 * HOUR, end, 7 * MINUTE))
    for times in moments:
        same(evaluate_on_node(node, text, times), whole.query(text, times))


@pytest.mark.parametrize(
    "text", ["m0", "sum(rate(m0[15m]))", "topk(2, m0)", "predict_linear(m0[20m], 600)", "rate(m9[5m])"]
)
def test_answers_do_not_depend_on_how_much_is_evaluated_at_a_time(
    node: NodeWorld, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    end = node.worlds[0].clock.now_ms()
    times = QueryTimes(end - 3 * HOUR, end, 7 * MINUTE)
    expected = evaluate_on_node(node, text, times)
    monkeypatch.setattr(fragment_answers, "_PART_VISITS", 1)
    same(evaluate_on_node(node, text, times), expected)


def test_a_cancelled_query_ends_within_a_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with node_world(tmp_path, shards=1, linked=False) as node:
        (world,) = node.worlds
        now = world.clock.now_ms()
        world.produce(*(("m0", f"s{number}", now, 1.0) for number in range(50)))
        world.settle()
        (fragment,) = prepare("rate(m0[5m])", QueryTimes.instant(now)).fragments
        evaluated = []
        cancelled = Cancellation(CLOCK, 60.0)

        def rows(fragment: Fragment, samples: Samples) -> F64Matrix:
            evaluated.append(len(samples.first_sample) - 1)
            if len(evaluated) == 3:
                cancelled.cancel()
            return fragment_rows(fragment, samples)

        monkeypatch.setattr(fragment_answers, "fragment_rows", rows)
        monkeypatch.setattr(fragment_answers, "_PART_CELLS", 4)
        with pytest.raises(QueryCancelled):
            node.services[0].answer(EvaluateRequest(fragment, 1, 1000, 1000), cancelled)
        assert evaluated == [4, 4, 4]


def test_concurrent_queries_hold_a_limited_number_of_blocks_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    semaphore, queries = FairSemaphore(2), 5
    monkeypatch.setattr(shard_answers, "FairSemaphore", lambda _: semaphore)
    with node_world(tmp_path, shards=1, linked=False) as node:
        (world,) = node.worlds
        now = world.clock.now_ms()
        world.produce(*(("m0", f"s{number}", now, 1.0) for number in range(50)))
        world.settle()
        (fragment,) = prepare("rate(m0[5m])", QueryTimes.instant(now)).fragments
        lock, inside, most, evaluated, answered = threading.Lock(), 0, 0, list[int](), list[Answer]()

        def all_are_inside_or_waiting() -> bool:
            return bool(evaluated) or inside + semaphore.waiting == queries

        def rows(fragment: Fragment, samples: Samples) -> F64Matrix:
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            # The first ones continue once all others wait or have been admitted as well.
            assert wait_until(all_are_inside_or_waiting, timeout=WAIT_S, clock=CLOCK)
            with lock:
                inside -= 1
                evaluated.append(len(samples.first_sample) - 1)
            return fragment_rows(fragment, samples)

        def evaluate_fragment() -> None:
            answered.append(
                node.services[0].answer(EvaluateRequest(fragment, 1, 1000, 1000), Cancellation(CLOCK, WAIT_S))
            )

        monkeypatch.setattr(fragment_answers, "fragment_rows", rows)
        threads = [threading.Thread(target=evaluate_fragment) for _ in range(queries)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert len(answered) == queries
        assert evaluated == queries * [50]
        assert most == 2


def test_equal_label_sets_are_an_error_in_any_shard(node: NodeWorld) -> None:
    end = node.worlds[0].clock.now_ms()
    with pytest.raises(EvaluationError, match="same labelset"):
        evaluate_on_node(node, 'sum(rate({__name__=~"m.*"}[3h]))', QueryTimes.instant(end))


def test_errors_name_the_exceeded_limit(node: NodeWorld) -> None:
    end = node.worlds[0].clock.now_ms()
    times = QueryTimes(end - 3 * HOUR, end, MINUTE)
    with pytest.raises(TooManySeries):
        evaluate_on_node(node, "sum(m0)", times, EvaluationLimits(max_series=1, max_samples=1000))
    with pytest.raises(TooManySamples):
        evaluate_on_node(node, "m0", times, EvaluationLimits(max_series=1000, max_samples=200))


def test_the_limit_of_samples_bounds_memory_and_not_what_an_aggregation_reads(tmp_path: Path) -> None:
    """An aggregation keeps one block of its samples at a time; raw samples are kept completely."""
    with node_world(tmp_path, shards=1, linked=False) as node:
        (world,) = node.worlds
        start = world.clock.now_ms()
        world.produce(*(("m0", name, start + at, 1.0) for name in "abcdefgh" for at in range(100)))
        world.settle()
        times = QueryTimes.instant(start + MINUTE)
        limits = EvaluationLimits(max_series=8, max_samples=400)
        counted = evaluate_on_node(node, "sum(count_over_time(m0[3m]))", times, limits)
        assert [value.tolist() for _, value in series_of(counted).values()] == [[800.0]]
        with pytest.raises(TooManySamples):
            evaluate_on_node(node, "m0[3m]", times, limits)
        with pytest.raises(TooManySeries):
            evaluate_on_node(
                node, "sum(count_over_time(m0[3m]))", times, EvaluationLimits(max_series=7, max_samples=400)
            )
