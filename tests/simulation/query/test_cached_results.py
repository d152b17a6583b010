"""The result cache of a shard: which steps of a range query's result are used for the next query."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.query.queries import Cancellation
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_requests import EvaluateRequest
from strandline.node.shard.status import Phase
from strandline.promql.engine import prepare
from strandline.promql.plan.fragments import Fragment
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.values import STALE
from support.cached_results import STEP, CacheComparison, cache_comparison, ending
from support.links import CLOCK
from support.query_worlds import LiveWorld, LuceneWorld
from support.shard_world import HOUR, MINUTE, POLICY

pytestmark = pytest.mark.simulation

SUM = "sum by (name) (rate(m0[15m]))"
HIT, PARTIAL, MISS = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def live(world: LuceneWorld, minutes: int, names: str = "abc") -> None:
    for minute in range(minutes):
        now = world.clock.now_ms()
        world.produce(*(("m0", name, now, float(minute * place)) for place, name in enumerate(names, 1)))
        world.pass_time(MINUTE)
        world.read_all()


def now_of(both: CacheComparison) -> int:
    return both.node.worlds[0].clock.now_ms()


@pytest.fixture
def both(tmp_path: Path) -> Iterator[CacheComparison]:
    """A shard with samples of 90 minutes, some stored and some in the open bucket."""
    with cache_comparison(tmp_path, 1, policy=replace(POLICY, retention=100 * HOUR), groups=2) as made:
        (world,) = made.node.worlds
        live(world, 90)
        world.settle()
        assert world.manifest().groups
        assert world.running.buffer.status().samples
        yield made


@pytest.fixture
def world(both: CacheComparison) -> LuceneWorld:
    return both.node.worlds[0]


@pytest.mark.parametrize("text", [SUM, "m0", "topk(2, m0)", "quantile(0.5, m0)", 'count_values("v", m0)', "stddev(m0)"])
def test_a_repeated_query_is_answered_from_the_cache(both: CacheComparison, text: str) -> None:
    times = ending(now_of(both))
    assert both.kept(text, times) == MISS
    assert both.kept(text, times) == HIT


def test_a_refresh_evaluates_the_newest_steps_and_reads_no_others(world: LuceneWorld) -> None:
    def read(answers: ShardAnswers) -> int:
        (fragment,) = prepare(SUM, ending(world.clock.now_ms())).fragments
        assert isinstance(fragment, Fragment)
        answer = answers.answer(EvaluateRequest(fragment, 1, 100, 100_000), Cancellation(CLOCK, 30.0))
        return answer.samples

    with closing(ShardAnswers(LiveWorld(world))) as answers:
        whole = read(answers)
        live(world, 5)
        # A window of 15 minutes, of three series.
        assert whole > 150
        assert read(answers) <= 2 * 3 * 20
        assert answers.results.figures().partial_hits == 1


@pytest.mark.parametrize(("steps", "kept"), [(3, MISS), (7, HIT), (9, HIT), (12, PARTIAL), (14, PARTIAL), (40, MISS)])
def test_a_longer_range_uses_the_common_steps_and_another_length_has_its_own_result(
    both: CacheComparison, steps: int, kept: tuple[int, int, int]
) -> None:
    start = ending(now_of(both)).start
    both.check(SUM, QueryTimes(start, start + 10 * STEP, STEP))
    assert both.kept(SUM, QueryTimes(start, start + steps * STEP, STEP)) == kept
    assert both.kept(SUM, QueryTimes(start, start + 10 * STEP, STEP)) == (PARTIAL if kept == HIT else HIT)


@pytest.mark.parametrize("text", [SUM, "m0"])
def test_a_later_range_uses_the_common_steps(both: CacheComparison, text: str) -> None:
    times = ending(now_of(both))
    both.check(text, times)
    for steps, kept in ((1, HIT), (2, PARTIAL)):
        times = replace(times, start=times.start + 2 * STEP, end=times.end + (steps - 1) * STEP)
        assert both.kept(text, times) == kept


def test_matchers_in_a_different_order_are_the_same_query(both: CacheComparison) -> None:
    both.check('sum(m0{name=~"a|b",name!="b"})', ending(now_of(both)))
    assert both.kept('sum(m0{name!="b",name=~"a|b"})', ending(now_of(both))) == HIT


@pytest.mark.parametrize(
    "change",
    [
        lambda text, times: (text.replace("15m", "16m"), times),
        lambda text, times: (text.replace("rate", "increase"), times),
        lambda text, times: (text.replace("by (name)", "without (name)"), times),
        lambda text, times: (text.replace("[15m]", "[15m] offset 1m"), times),
        lambda text, times: (text, replace(times, start=times.start + MINUTE, end=times.end + MINUTE)),
        lambda text, times: (text, replace(times, step=2 * STEP)),
        lambda text, times: (text, replace(times, start=times.start - STEP)),
    ],
    ids=["range", "function", "grouping", "offset", "phase", "step", "an earlier start"],
)
def test_a_different_query_uses_no_cached_steps(
    both: CacheComparison, change: Callable[[str, QueryTimes], tuple[str, QueryTimes]]
) -> None:
    times = ending(now_of(both))
    both.check(SUM, times)
    assert both.kept(*change(SUM, times)) == MISS


def test_a_different_lookback_delta_is_a_different_query(both: CacheComparison) -> None:
    times = ending(now_of(both))
    both.check("sum(m0)", times)
    assert both.kept("sum(m0)", replace(times, lookback=MINUTE)) == MISS


@pytest.mark.parametrize("text", ["m0 @ end()", "sum(m0 @ 3600000)", "m0 > time()", "m0 * (time() - 1)", "topk(0, m0)"])
def test_results_that_depend_on_samples_outside_their_windows_are_not_cached(both: CacheComparison, text: str) -> None:
    for _ in range(2):
        assert both.kept(text, ending(now_of(both))) == (0, 0, 0)


def test_instant_queries_are_not_cached_but_the_steps_of_their_subqueries_are(both: CacheComparison) -> None:
    for _ in range(2):
        assert both.kept(SUM, QueryTimes.instant(now_of(both))) == (0, 0, 0)
    text = "max_over_time(sum(m0)[30m:5m])"
    both.check(text, QueryTimes.instant(now_of(both)))
    assert both.kept(text, QueryTimes.instant(now_of(both))) == HIT


@pytest.mark.parametrize("ago", [0, 7, 31, 62])
@pytest.mark.parametrize("text", [SUM, "m0", "count(m0)"])
def test_a_late_sample_is_visible_immediately(both: CacheComparison, world: LuceneWorld, ago: int, text: str) -> None:
    times = ending(now_of(both))
    both.check(text, times)
    world.produce(("m0", "b", times.end - ago * MINUTE - 1, 1_000.0))
    world.read_all()
    assert both.kept(text, times) == (PARTIAL if ago < 60 else MISS)


@pytest.mark.parametrize("value", [77.0, float(STALE), float("nan")], ids=["value", "stale marker", "NaN"])
def test_an_overwritten_sample_is_visible_immediately(both: CacheComparison, world: LuceneWorld, value: float) -> None:
    times = ending(now_of(both))
    both.check("m0", times)
    ((_, name), time, _) = world.produced[-20].samples[0]
    world.produce(("m0", name, time, value))
    world.read_all()
    assert both.kept("m0", times) == PARTIAL


def test_storing_what_was_in_buffers_changes_nothing(both: CacheComparison, world: LuceneWorld) -> None:
    """Neither while the buffer exists nor after it was dropped."""
    times = ending(now_of(both))
    world.pass_time(HOUR)
    world.read_all()
    assert world.running.flusher.closed_buckets()
    both.check(SUM, times)
    stored = len(world.manifest().groups)
    while world.running.flusher.closed_buckets():
        assert world.running.flusher.step() == 0
        assert both.kept(SUM, times) == HIT
    assert len(world.manifest().groups) == stored + 2


def test_a_formerly_open_bucket_is_evaluated_again_once_its_buffer_is_dropped(
    both: CacheComparison, world: LuceneWorld
) -> None:
    times = ending(now_of(both))
    both.check(SUM, times)
    world.pass_hours(1)
    assert not world.running.flusher.closed_buckets()
    assert both.kept(SUM, times) == PARTIAL
    assert both.kept(SUM, times) == HIT


def test_a_series_that_searches_find_later_is_included_in_steps_that_were_cached_before(tmp_path: Path) -> None:
    """Its samples had already been read when these steps were evaluated."""
    with cache_comparison(tmp_path, 1) as both:
        (world,) = both.node.worlds
        assert world.home._refreshing is not None
        live(world, 60)
        times = ending(now_of(both))
        both.check("sum(m0)", times)
        world.home._refreshing._bound = 3_600.0
        world.produce(("m0", "new", times.end - 22 * MINUTE, 500.0))
        world.read_all()
        # The sample is old by the present time, so searches don't find its series.
        both.check("sum(m0)", times)
        assert both.kept("sum(m0)", times) == HIT
        world.home.index.refresh()
        assert both.kept("sum(m0)", times) == PARTIAL


def test_a_rejected_series_is_included_once_it_is_admitted(tmp_path: Path) -> None:
    with cache_comparison(tmp_path, 1, series_limit=3) as both:
        (world,) = both.node.worlds
        live(world, 60)
        times = ending(now_of(both))
        both.check("sum(m0)", times)
        world.produce(("m0", "refused", times.end - 22 * MINUTE, 500.0))
        world.read_all()
        assert world.status.counters.refused_rows == 1
        both.check("sum(m0)", times)
        world.running.index._series_limit = 10
        world.produce(("m0", "refused", times.end - 17 * MINUTE, 600.0))
        world.read_all()
        assert both.kept("sum(m0)", times) == PARTIAL


def test_series_that_have_ended_before_the_range_cost_nothing(both: CacheComparison, world: LuceneWorld) -> None:
    live(world, 5, names="abcz")
    both.check(SUM, ending(now_of(both)))
    for _ in range(20):
        live(world, 5)
        assert both.kept(SUM, ending(now_of(both))) == PARTIAL


def test_incomplete_answers_are_not_cached(both: CacheComparison, world: LuceneWorld) -> None:
    world.status.phase, world.status.lag = Phase.CATCHING_UP, 10
    for _ in range(2):
        assert both.kept(SUM, ending(now_of(both))) == (0, 0, 0)
    assert both.figures.bytes == 0
    world.status.phase, world.status.lag = Phase.ACTIVE, 0
    assert both.kept(SUM, ending(now_of(both))) == MISS


def test_the_cache_is_empty_after_a_restart_of_the_shard(both: CacheComparison, world: LuceneWorld) -> None:
    times = ending(now_of(both))
    both.check(SUM, times)
    world.crash()
    world.start()
    world.settle()
    assert both.kept(SUM, times) == MISS


def test_series_in_the_wrong_partition_are_excluded_from_results_that_were_cached_with_them(tmp_path: Path) -> None:
    """As after adding partitions, when a front sends requests with the new number."""
    with cache_comparison(tmp_path, 2) as both:
        live(both.node.worlds[0], 60, names="abcdef")
        times = ending(now_of(both))
        for partitions in (1, 2, 5, 2):
            both.node.status.topic_partitions = partitions
            both.check("sum(m0)", times)


def test_an_unavailable_shard_is_not_hidden_by_the_cache(tmp_path: Path) -> None:
    with cache_comparison(tmp_path, 2) as both:
        for world in both.node.worlds:
            live(world, 60, names="abcdef")
        times = ending(now_of(both))
        both.check("sum(m0)", times)
        gone = both.node.clients.pop(1)
        both.check("sum(m0)", times)
        both.node.clients[1] = gone
        both.check("sum(m0)", times)


def test_nothing_is_cached_without_memory(world: LuceneWorld) -> None:
    (fragment,) = prepare(SUM, ending(world.clock.now_ms())).fragments
    assert isinstance(fragment, Fragment)
    ask = EvaluateRequest(fragment, 1, 100, 100_000)
    for room in (0, 1_000):
        with closing(ShardAnswers(LiveWorld(world), result_cache=room)) as answers:
            for _ in range(2):
                answers.answer(ask, Cancellation(CLOCK, 30.0))
            figures = answers.results.figures()
            assert (figures.hits, figures.bytes) == (0, 0)
