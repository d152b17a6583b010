"""Planned cuts equal those that a shard makes when it reads the same log."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strandline.node.shard.log_times import log_times
from strandline.recovery.cut_planning import planned_cuts
from strandline.recovery.cutting import Cutting
from strandline.store.rows import CutRow
from support.shard_world import HOUR, MINUTE, POLICY, World

pytestmark = pytest.mark.simulation

MEMORY = Path("/dev/shm")
RECORD, LATE_RECORD, HOLES, COMMITTED, ABORTED, OPEN = "record", "late record", "holes", "committed", "aborted", "open"
STEPS_IN_ORDER = st.sampled_from([RECORD, RECORD, COMMITTED, ABORTED, HOLES])
STEPS_BESIDE_OPEN = st.sampled_from([RECORD, COMMITTED, HOLES])
STEPS_OUT_OF_ORDER = st.sampled_from([RECORD, LATE_RECORD, LATE_RECORD, HOLES])
# An event, and the minutes before it.
PAUSES = st.sampled_from([0, 1, 15, 45, 60, 61, 150, 400])
Step = tuple[str, int]


@contextmanager
def new_world() -> Iterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="strandline-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        # Nothing is purged or rejected as too old in a test.
        with closing(World(folder, policy=replace(POLICY, retention=1000 * HOUR))) as world:
            yield world
    finally:
        shutil.rmtree(folder)


def apply_events(world: World, steps: Sequence[Step]) -> None:
    for step, minutes in steps:
        world.pass_time(minutes * MINUTE)
        now = world.clock.now_ms()
        match step:
            case "record":
                world.produce(("m", "a", now, 1.0))
            case "late record":
                world.produce(("m", "a", now, 1.0), late=70 * MINUTE)
            case "holes":
                # As left by compaction: readers never see these offsets, and lookups by time do not find them.
                transaction = world.log.begin()
                transaction.append(b"", 0)
                transaction.abort()
            case "aborted":
                world.abort_transaction()
            case "committed":
                transaction = world.log.begin()
                transaction.append(b"no request, but a record", now)
                transaction.commit()
            case "open":
                world.log.begin().append(b"", now)


def cuts_of(world: World) -> list[CutRow]:
    return sorted(world.manifest().cuts, key=lambda cut: cut.bucket)


def visible(world: World, start: int, end: int) -> list[int]:
    """The offsets in a range that a reader sees."""
    found: list[int] = []
    world.log.seek(start)
    while world.log.ends().last_stable > start:
        records = world.log.poll(100, 0)
        found += [offset for offset in records.offsets.tolist() if offset < end]
        if records.position >= end:
            break
    return found


def check_planned_cuts(steps: Sequence[Step], last_pause: int) -> None:
    """Start a shard and crash it, let the events happen, plan, and let the shard return and read the same."""
    with new_world() as world:
        world.start()
        world.settle()
        world.crash()
        apply_events(world, steps)
        world.pass_time(last_pause * MINUTE)
        before = cuts_of(world)
        cutting = Cutting(world.options.policy.flush_interval, world.options.grace)
        present, ends = world.clock.now_ms(), world.log.ends()
        planned = planned_cuts(before[-1], ends, present, log_times(world.log), cutting)
        planned_ranges = [(cut.bucket, visible(world, cut.start, cut.end)) for cut in planned]
        world.log.close()
        world.start()
        world.settle()
        made = cuts_of(world)[len(before) :]
        assert planned_ranges == [(cut.bucket, visible(world, cut.start, cut.end)) for cut in made]
        if not any(step in (HOLES, ABORTED, COMMITTED) for step, _ in steps):
            # Without invisible offsets, a bucket can end at only one offset.
            assert [tuple(cut) for cut in planned] == [(cut.bucket, cut.start, cut.end) for cut in made]


@settings(max_examples=60)
@given(steps=st.lists(st.tuples(STEPS_IN_ORDER, PAUSES), max_size=12), last_pause=PAUSES)
@example(steps=[], last_pause=0)
@example(steps=[], last_pause=400)
@example(steps=[(RECORD, 0), (ABORTED, 61)], last_pause=61)
@example(steps=[(RECORD, 0), (ABORTED, 61), (RECORD, 0)], last_pause=0)
@example(steps=[(HOLES, 0)], last_pause=61)
def test_planned_cuts_are_a_shard_s_own_with_idle_hours_transactions_and_holes(
    steps: list[Step], last_pause: int
) -> None:
    check_planned_cuts(steps, last_pause)


@settings(max_examples=60)
@given(steps=st.lists(st.tuples(STEPS_OUT_OF_ORDER, PAUSES), max_size=12), last_pause=PAUSES)
@example(steps=[(RECORD, 61), (LATE_RECORD, 0), (RECORD, 0)], last_pause=0)
def test_planned_cuts_are_a_shard_s_own_where_record_times_are_out_of_order(steps: list[Step], last_pause: int) -> None:
    check_planned_cuts(steps, last_pause)


@settings(max_examples=40)
@given(
    steps=st.lists(st.tuples(STEPS_BESIDE_OPEN, PAUSES), max_size=6),
    behind=st.lists(st.tuples(STEPS_BESIDE_OPEN, PAUSES), max_size=6),
    last_pause=PAUSES,
)
@example(steps=[], behind=[], last_pause=150)
@example(steps=[(RECORD, 0)], behind=[(RECORD, 61)], last_pause=150)
def test_neither_plan_nor_shard_cuts_after_an_open_transaction(
    steps: list[Step], behind: list[Step], last_pause: int
) -> None:
    check_planned_cuts([*steps, (OPEN, 1), *behind], last_pause)


def test_an_aborted_record_after_an_open_transaction_ends_a_bucket_in_a_plan_only() -> None:
    """Brokers find it by its time, but readers never see it. The bucket is over all the same."""
    with new_world() as world:
        world.start()
        world.settle()
        newest = cuts_of(world)[-1]
        apply_events(world, [(ABORTED, 61), (OPEN, 0)])
        world.settle()
        cutting = Cutting(world.options.policy.flush_interval, world.options.grace)
        planned = planned_cuts(newest, world.log.ends(), world.clock.now_ms(), log_times(world.log), cutting)
        assert [tuple(cut) for cut in planned] == [(newest.bucket + 1, 0, 0)]
        assert cuts_of(world)[-1] == newest


def test_the_buckets_of_a_long_idle_time_are_planned_up_to_the_newest_deadline() -> None:
    with new_world() as world:
        world.start()
        world.settle()
        world.crash()
        newest = cuts_of(world)[-1]
        world.pass_time(30 * HOUR)
        cutting = Cutting(world.options.policy.flush_interval, world.options.grace)
        planned = planned_cuts(newest, world.log.ends(), world.clock.now_ms(), log_times(world.log), cutting)
        assert planned[-1].bucket == (world.clock.now_ms() - world.options.grace) // HOUR - 1
        assert len(planned) == planned[-1].bucket - newest.bucket
