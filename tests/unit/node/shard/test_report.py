"""The report of a shard, as a value that is sent to another process."""

from contextlib import closing
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.shard.options import ReplayMode
from strandline.node.shard.reader import ShardReader
from strandline.node.shard.report import ShardReport, report_of
from strandline.node.shard.running import RunningShard
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase
from strandline.recovery.offset_policy import Accepted
from strandline.store.selecting import WantedSeries
from strandline.time_range import ALL_TIMES
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.full_figures import full_report
from support.shard_world import GRACE, HOUR, METRICS, World, group_fails, other_group, produce_everywhere

pytestmark = pytest.mark.unit

SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(),
    bool: st.booleans(),
    type(None): st.none(),
    Phase: st.sampled_from(Phase),
}


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, with no field left at its default."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: any_of(hints[field.name]) for field in fields(kind)})
    if get_origin(kind) in (UnionType, Union):
        return st.one_of(*map(any_of, get_args(kind)))
    assert get_origin(kind) is dict, kind
    key, value = get_args(kind)
    return st.dictionaries(any_of(key), any_of(value), max_size=3)


@given(any_of(ShardReport))
def test_a_report_survives_a_round_trip(report: ShardReport) -> None:
    assert ShardReport.from_json(report.to_json()) == report


def test_a_report_with_all_fields_survives_a_round_trip() -> None:
    assert ShardReport.from_json(full_report().to_json()) == full_report()


@pytest.fixture
def running(world: World) -> RunningShard:
    """A shard that has not started yet."""
    return RunningShard(world.parts(), accepted=Accepted())


def start(running: RunningShard, world: World) -> Shard:
    running.shard = world.shard = Shard.start(world.parts(), running.status)
    return running.shard


def test_before_its_start_a_shard_reports_its_phase_and_its_limits(running: RunningShard, world: World) -> None:
    report = report_of(running)
    assert (report.status.phase, report.epoch, report.open_bucket) == (Phase.ACQUIRING, None, None)
    assert report.reported_at == world.clock.now_ms()
    assert (report.limits.flush_interval, report.limits.series) == (HOUR, 1000)


def test_a_report_does_not_change_with_the_shard(running: RunningShard, world: World) -> None:
    start(running, world)
    before = report_of(running)
    document = before.to_json()
    produce_everywhere(world)
    world.read_all()
    assert before.to_json() == document
    assert report_of(running).status.counters.records == 1


def test_a_reason_that_is_not_utf8_is_reported_with_replacements(running: RunningShard) -> None:
    running.status.reason = "the folder /data/\udcff can't be read"
    assert ShardReport.from_json(report_of(running).to_json()).status.reason == "the folder /data/? can't be read"


def test_the_open_bucket_and_the_index_are_reported(running: RunningShard, world: World) -> None:
    start(running, world)
    produce_everywhere(world)
    world.read_all()
    report = report_of(running)
    opened = report.open_bucket
    assert opened is not None
    assert (opened.bucket, opened.start, opened.end) == (1000, 1000 * HOUR, 1001 * HOUR)
    assert (opened.active, opened.changed, opened.samples) == (len(METRICS), len(METRICS), len(METRICS))
    assert (opened.state, opened.shard) == ("open", 0)
    assert (report.keys, report.index.live_keys, report.index.next_part_id) == (len(METRICS),) * 3
    assert report.status.counters.newest_record_at == world.clock.now_ms()
    assert report.epoch == 1
    assert report.manifest_rows == 1, "the first start's cut"


def test_the_record_time_is_that_of_the_last_batch(running: RunningShard, world: World) -> None:
    start(running, world)
    world.produce(("m", "a", world.clock.now_ms(), 1.0))
    world.read_all()
    world.produce(("m", "a", world.clock.now_ms() + 1, 1.0), late=5_000)
    world.read_all()
    assert report_of(running).status.counters.newest_record_at == world.clock.now_ms() - 5_000


def test_an_unstored_bucket_is_reported_until_it_is_stored(running: RunningShard, world: World) -> None:
    start(running, world)
    produce_everywhere(world)
    world.read_all()
    assert report_of(running).unstored_since is None
    failing_group = other_group(world)
    world.store.before = group_fails(failing_group)
    world.pass_time(HOUR + GRACE)
    world.settle()
    report = report_of(running)
    assert (report.unstored_buckets, report.unstored_since) == (1, 1001 * HOUR)
    assert report.status.counters.store_retries > 0
    stored_at = report.status.counters.last_stored_at
    assert stored_at == world.clock.now_ms(), "the other groups"
    world.store.before = lambda _: None
    world.pass_time(60_000)
    world.settle()
    report = report_of(running)
    assert (report.unstored_buckets, report.unstored_since) == (0, None)
    assert report.status.counters.last_stored_at == world.clock.now_ms() > stored_at


def test_segment_cache_hits_are_reported(running: RunningShard, world: World) -> None:
    start(running, world)
    produce_everywhere(world)
    world.read_all()
    world.pass_time(HOUR + GRACE)
    world.settle()
    rows, figures = world.running.index.columns.rows, []
    order = np.lexsort((rows.key_low, rows.key_high, rows.metric))
    selected = WantedSeries(rows.metric[order], rows.key_high[order], rows.key_low[order])
    for _ in range(3):
        # Each query has its own reader: the cache belongs to the shard.
        with closing(ShardReader(world.running)) as reader:
            reader.read(selected, ALL_TIMES)
        figures.append(report_of(running).segment_cache)
    first, second, third = figures
    assert (first.bytes, first.hits) == (0, 0)
    assert first.misses > 0
    assert (second.hits, second.misses) == (0, 2 * first.misses)
    assert (third.hits, third.misses) == (first.misses, second.misses)
    assert third.bytes == second.bytes > 0


def test_records_of_keys_are_counted_by_the_reason_of_their_storing(running: RunningShard, world: World) -> None:
    start(running, world)
    produce_everywhere(world, "short")
    for _ in range(world.options.policy.kept_buckets + 1):
        world.produce(("m", "long", world.clock.now_ms(), 1.0))
        world.pass_hours(1)
    counters = report_of(running).status.counters
    # All keys begin in the first bucket. In the second, those without a sample end. "long" is rolled over after N
    # buckets, and so are the ended keys unless they are purged by then.
    assert counters.ended_keys == len(METRICS)
    assert counters.rolled_over_keys >= 1
    assert counters.index_records == len(METRICS) + 1 + counters.ended_keys + counters.rolled_over_keys
    assert 0 < counters.last_index_bytes <= counters.index_bytes


def test_a_key_that_only_rolls_over_is_counted_as_a_rollover(running: RunningShard, world: World) -> None:
    start(running, world)
    kept_buckets = world.options.policy.kept_buckets
    rolled_over = []
    for _ in range(kept_buckets + 2):
        world.produce(("m", "long", world.clock.now_ms(), 1.0))
        world.pass_hours(1)
        rolled_over.append(report_of(running).status.counters.rolled_over_keys)
    assert (rolled_over[0], rolled_over[-1]) == (0, 1)
    counters = report_of(running).status.counters
    assert (counters.index_records, counters.ended_keys) == (2, 0)


def test_replay_jobs_are_reported_by_state_until_the_replay_ends(running: RunningShard, world: World) -> None:
    start(running, world)
    world.settle()
    world.crash()
    for _ in range(3):
        produce_everywhere(world)
        world.pass_time(HOUR)
    world.pass_time(GRACE)
    world.replay_by(ReplayMode.SPARK)
    restarted = RunningShard(world.parts(), accepted=Accepted())
    shard = start(restarted, world)
    assert report_of(restarted).jobs == {}, "the jobs were not read yet"
    shard.step()
    assert report_of(restarted).jobs == {"pending": 3}
    assert report_of(restarted).open_jobs == 3
    world.work()
    world.pass_time(1_000)
    shard.step()
    assert report_of(restarted).jobs == {"done": 3}
    assert report_of(restarted).open_jobs == 0
    world.settle()
    world.pass_time(1_000)
    world.settle()
    assert world.shard is not None
    assert report_of(restarted).jobs == {}
    assert restarted.status.phase is Phase.ACTIVE


def test_lost_dead_letters_are_reported(running: RunningShard, world: World) -> None:
    start(running, world)
    world.dead_letters._capacity = 1
    for _ in range(3):
        world.log.append(b"nothing that can be decoded", world.clock.now_ms())
    world.read_all()
    report = report_of(running)
    assert (report.status.counters.dead_letters, report.lost_dead_letters) == (3, 2)


def test_dropped_series_are_reported_by_reason(running: RunningShard, world: World) -> None:
    start(running, world)
    world.log.append(compress(encode_request([Series([], [(1, 1.0)])])), world.clock.now_ms())
    world.read_all()
    assert report_of(running).status.counters.dropped_series == {"NO_LABELS": 1}


def test_the_buffer_is_reported_with_its_limits(running: RunningShard, world: World) -> None:
    start(running, world)
    produce_everywhere(world)
    produce_everywhere(world, "b")
    world.read_all()
    report = report_of(running)
    assert (report.buffer.series, report.buffer.samples) == (2 * len(METRICS), 2 * len(METRICS))
    assert report.buffer.budget_used >= report.buffer.memory_bytes > 0
    assert (report.limits.buffer_bytes, report.limits.spill_bytes) == (1 << 30, 1 << 30)
