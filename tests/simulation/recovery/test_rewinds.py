"""Rewinds in a world that goes on: wherever one is stopped, every sample is there once in the end, every key, and no id
twice.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from strandline.index.sample_limits import SampleLimits
from strandline.index.vm import start_vm
from strandline.node.shard.documents_home import LuceneHome
from strandline.node.shard.options import ReplayMode
from strandline.node.shard.ownership import StillOwned, Taker
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase, Status
from strandline.recovery.checkpoints import designated_group, progress
from strandline.recovery.rewinding import RewindRefused, ToBucket, ToOffset, ToTime
from strandline.store.jobs import JobState
from strandline.store.protocol import Fenced, StoreUnavailable
from support.rewound_worlds import buckets_with, checked, ids, rewound, stopped, superseded, worlds
from support.shard_world import (
    HOUR,
    METRICS,
    MINUTE,
    POLICY,
    START,
    Crash,
    StoreCall,
    World,
    group_fails,
    other_group,
    produce_everywhere,
    quietly,
)

pytestmark = pytest.mark.simulation

FIRST = START // HOUR  # The bucket that the first record falls into.
LASTING = replace(POLICY, retention=48 * HOUR)  # Nothing is purged within a test.


@pytest.fixture
def make_world() -> Iterator[Callable[..., World]]:
    with worlds() as make:
        yield make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


def lived(world: World, hours: int = 5) -> World:
    """A world with so many hours, each with a key of its own that ends and one that stays; its shard has stopped."""
    world.start()
    for hour in range(hours):
        produce_everywhere(world, f"hour {hour}")
        produce_everywhere(world, "always", float(hour))
        world.pass_hours(1)
    stopped(world)
    return world


def test_a_rewound_shard_reads_again_from_the_cut_and_ends_up_as_it_was(world: World) -> None:
    lived(world)
    world.start()
    keys, before = world.keys(), ids(world)
    stopped(world)
    state = world.manifest().state
    plan = rewound(world, ToBucket(FIRST + 2))
    assert (plan.bucket, plan.last_bucket, plan.offset, plan.behind) == (FIRST + 2, FIRST + 4, 4, 10)
    assert (plan.rows, plan.samples) == (3 * world.options.groups, 6 * len(METRICS))
    after = world.manifest()
    assert superseded(world) == {FIRST + 2, FIRST + 3, FIRST + 4}
    assert (after.state.seen_at, after.state.next_part_id) == (None, state.next_part_id)
    world.start()
    assert world.status.phase is Phase.REPLAYING
    assert world.running.position == 4
    checked(world)
    assert world.is_active()
    assert superseded(world) == set()
    assert world.keys() == keys
    assert ids(world) == before, "ids are stored with their keys, in superseded buckets too"
    world.crash()
    world.start()
    checked(world)
    assert world.keys() == keys


def test_a_rewind_to_a_time_begins_with_the_bucket_of_the_records_of_that_time(world: World) -> None:
    lived(world)
    # What comes within the grace lies in the bucket before.
    assert rewound(world, ToTime((FIRST + 3) * HOUR)).bucket == FIRST + 2


def test_27_a_rewind_further_than_the_log_reaches_is_refused_and_takes_nothing_away(world: World) -> None:
    lived(world)
    world.log.delete_before(5)
    before = world.manifest()
    for target in (ToBucket(FIRST + 2), ToOffset(4), ToTime(START)):
        with pytest.raises(RewindRefused, match="the log begins at offset 5") as caught:
            rewound(world, target)
        assert f"The oldest that is possible is bucket {FIRST + 3}, offset 6" in caught.value.remedy
    after = world.manifest()
    assert (after.cuts, after.groups) == (before.cuts, before.groups)
    assert after.state.seen_at is None, "whoever comes next need not wait"
    del world.produced[:]
    world.start()
    world.settle()
    assert world.is_active()


def test_27_a_rewind_that_stops_half_way_is_a_shorter_one(make_world: Callable[..., World]) -> None:
    """After each of its batches, before or after the store has it."""
    groups = 4
    for whole_batches in range(4):
        for applied in (False, True):
            world, shorter = lived(make_world()), lived(make_world())
            left = whole_batches

            def hook(call: StoreCall) -> None:
                nonlocal left
                if call.name == "commit":
                    left -= 1
                    if left < 0:
                        raise Crash

            if applied:
                world.store.after = hook
            else:
                world.store.before = hook
            with suppress(Crash):
                rewound(world, ToBucket(FIRST + 1), most_rows=groups)
            world.store.before = world.store.after = quietly
            done = min(4, whole_batches + applied)
            if done:
                rewound(shorter, ToBucket(FIRST + 5 - done))
            shard = world.options.shard
            found, wanted = (progress(one.manifest(), groups, shard) for one in (world, shorter))
            assert found is not None
            assert found == wanted, "it has the same holes as a rewind to a later cut"
            for one in (world, shorter):
                one.start()
                checked(one)
            assert world.keys() == shorter.keys()


def test_27_the_rest_of_a_rewind_is_done_by_calling_it_again(world: World) -> None:
    lived(world)

    def fail(call: StoreCall) -> None:
        if call.name == "commit" and len(superseded(world)) == 2:
            raise StoreUnavailable("no answer")

    world.store.before = fail
    with pytest.raises(StoreUnavailable):
        rewound(world, ToBucket(FIRST + 1), most_rows=4)
    world.store.before = quietly
    assert superseded(world) == {FIRST + 3, FIRST + 4}
    assert world.manifest().state.seen_at is None, "it has left, so that it can be called again at once"
    again = rewound(world, ToBucket(FIRST + 1), most_rows=4)
    assert [[row.bucket for row in batch] for batch in again.batches] == [[FIRST + 2] * 4, [FIRST + 1] * 4]
    assert rewound(world, ToBucket(FIRST + 1)).rows == 0, "and once more it does nothing"
    world.start()
    checked(world)


def test_27_an_ended_key_whose_only_record_lay_in_a_superseded_bucket_is_still_there(world: World) -> None:
    key, time = ("m", "ahead"), START + 30 * HOUR  # A sample from the future: its key ends soon, and stays for long.
    world.start()
    world.produce((*key, time, 1.0))
    world.pass_hours(17)
    stopped(world)
    newest = max(buckets_with(world, key))
    assert newest > FIRST + 10, "it was rolled over"
    rewound(world, ToBucket(newest))
    while len(buckets_with(world, key)) > 1:
        world.pass_time(HOUR)  # The others expire while nobody runs.
    assert buckets_with(world, key) == superseded(world) & {newest}
    world.start()
    assert world.keys()[key] == (time, time, time)
    world.settle()
    assert superseded(world) == set()
    world.crash()
    world.start()
    assert world.keys()[key] == (time, time, time), "it was written again, though no record has named it"


def test_what_was_written_again_counts_more_than_what_is_superseded(world: World) -> None:
    """A rewind is made because something was wrong. What is right now must not be undone by a crash in the middle."""
    world.options = replace(world.options, sample_limits=SampleLimits(behind=HOUR, ahead=None))
    world.start()
    world.produce(("m", "a", START, 1.0), ("m", "a", START - 3 * HOUR, 2.0))
    world.pass_hours(3)
    assert world.keys()["m", "a"][0] == START, "the older sample was refused"
    stopped(world)
    rewound(world, ToBucket(FIRST))
    world.options = replace(world.options, sample_limits=SampleLimits(None, None))
    world.start()
    world.read_all()
    while superseded(world) != {FIRST + 1, FIRST + 2}:
        world.running.flusher.step()
    world.crash()
    world.start()
    checked(world)
    assert world.keys()["m", "a"] == (START - 3 * HOUR, START, START)
    world.crash()
    world.start()
    assert world.keys()["m", "a"] == (START - 3 * HOUR, START, START)


def test_a_crash_at_every_call_of_a_rewind_and_of_the_start_behind_it_loses_and_doubles_nothing(
    make_world: Callable[..., World],
) -> None:
    calm = lived(make_world())
    calm.start()
    calm.settle()
    keys, crashes = calm.keys(), 0
    for crash_at in range(10_000):
        world = lived(make_world())
        left = crash_at

        def count(_call: StoreCall) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash

        world.store.before = world.store.after = count
        crashed = True
        with suppress(Crash):
            rewound(world, ToBucket(FIRST + 2), most_rows=4)
            world.start()
            world.settle()
            crashed = False
        world.crash()
        # Whoever was cut off in the middle of a rewind counts as an owner for a while: a node that starts takes it.
        world.start()
        checked(world)
        assert world.keys() == keys, f"after a crash at call {crash_at}"
        assert superseded(world) == set()
        if not crashed:
            break
        crashes += 1
    assert crashes > 60, "there were more calls than that"


def test_a_stuck_group_and_a_rewind_behind_it_leave_no_hole(make_world: Callable[..., World]) -> None:
    world = make_world(policy=LASTING)
    for stuck in (other_group(world), designated_group(world.options.shard, world.options.groups)):
        world.start()
        produce_everywhere(world, f"before {stuck}")
        world.store.before = group_fails(stuck)
        world.pass_hours(1)
        produce_everywhere(world, f"after {stuck}")
        world.pass_hours(2)
        stopped(world)
        newest = world.manifest().cuts[0].bucket
        plan = rewound(world, ToBucket(newest - 1))
        assert plan.rows == 2 * (world.options.groups - 1), "the stuck group has none to be marked"
        world.start()
        assert world.running.position < plan.offset, "it begins where the stuck group does"
        checked(world)


def test_a_rewind_to_where_reading_began_reads_all_of_it_again(world: World) -> None:
    lived(world, hours=2)
    plan = rewound(world, ToOffset(0))
    assert (plan.bucket, plan.buckets, plan.records) == (FIRST, 2, 4)
    world.start()
    checked(world)


def test_late_samples_are_late_again_after_a_rewind(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)
    world.produce(("m", "late", START + MINUTE, 1.0))
    world.pass_hours(1)
    before = {(row.bucket, row.group): row.late for row in world.manifest().groups}
    assert any(before.values())
    stopped(world)
    rewound(world, ToBucket(FIRST + 1))
    world.start()
    checked(world)
    assert {(row.bucket, row.group): row.late for row in world.manifest().groups} == before


def test_a_second_rewind_may_go_further_back_than_the_first(world: World) -> None:
    lived(world)
    rewound(world, ToBucket(FIRST + 3))
    world.start()
    world.read_all()
    while superseded(world) != {FIRST + 4}:
        world.running.flusher.step()
    stopped(world)
    plan = rewound(world, ToBucket(FIRST + 1))
    assert {row.bucket for batch in plan.batches for row in batch} == {FIRST + 1, FIRST + 2, FIRST + 3}
    world.start()
    checked(world)


def test_28_a_shard_that_is_owned_is_rewound_only_by_force_and_its_owner_is_fenced(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)
    owner, before = world.running, world.manifest()
    owner.flusher.step()
    with pytest.raises(StillOwned):
        rewound(world, ToBucket(FIRST))
    assert world.manifest() == before
    rewound(world, ToBucket(FIRST), taker=Taker.NODE)
    world.pass_time(2 * HOUR)
    owner.step()
    with pytest.raises(Fenced):
        owner.flusher.step()
    world.start()
    checked(world)


def test_a_node_that_starts_in_the_middle_of_a_rewind_ends_it(world: World) -> None:
    lived(world)

    def start(call: StoreCall) -> None:
        if call.name == "commit" and superseded(world):
            world.store.after = quietly
            world.start()

    world.store.after = start
    with pytest.raises(Fenced):
        rewound(world, ToBucket(FIRST + 1), most_rows=4)
    assert superseded(world) == {FIRST + 4}
    checked(world)
    assert world.is_active()


def started_with_lucene(world: World) -> LuceneHome:
    options = world.options
    home = LuceneHome(options.shard, options.folder / "index", options.policy.retention, 16, 1.0, world.clock)
    world.status = Status()
    world.shard = Shard.start(world.parts(home), world.status)  # type: ignore[arg-type]  # a home is a home
    return home


@pytest.mark.parametrize(("to", "is_used"), [(2, False), (5, True)])
def test_a_local_copy_of_what_was_superseded_is_not_used_and_an_older_one_does_no_harm(
    make_world: Callable[..., World], to: int, *, is_used: bool
) -> None:
    """The copy is that of the newest bucket whose index was stored when the shard stopped."""
    world = make_world(policy=LASTING)
    start_vm()
    with closing(started_with_lucene(world)):
        for hour in range(4):
            produce_everywhere(world, f"hour {hour}")
            world.pass_hours(1)
        keys = world.keys()
        world.running.flusher.leave()
    # Another host goes on, with a copy of its own.
    world.start()
    world.pass_hours(3)
    stopped(world)
    rewound(world, ToBucket(FIRST + to))
    with capture_logs() as lines, closing(started_with_lucene(world)):
        assert any("loaded from the store" in line["event"] for line in lines) is not is_used
        checked(world)
        assert world.keys().keys() == keys.keys()
        assert superseded(world) == set()


def test_a_plan_is_made_by_the_manifest_as_it_is_once_the_shard_was_taken(world: World) -> None:
    """An owner may have stored more between the question and the answer."""
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)

    def go_on(call: StoreCall) -> None:
        if call.name == "take":
            world.store.before = quietly
            world.pass_hours(1)

    world.store.before = go_on
    assert rewound(world, ToBucket(FIRST), taker=Taker.NODE).last_bucket == FIRST + 2
    assert superseded(world) == {FIRST, FIRST + 1, FIRST + 2}


def test_what_workers_had_read_is_read_again_after_a_rewind(world: World) -> None:
    """A job that is done must not stand for the reading again."""
    world.start()
    produce_everywhere(world, "before")
    world.pass_hours(1)
    world.crash()
    for hour in range(2):
        produce_everywhere(world, value=float(hour))
        world.pass_time(HOUR)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.work()
    done = {job.bucket: (job.plan, job.epoch) for job in world.sqlite.jobs(world.options.shard)}
    assert done
    world.crash()
    world.pass_time(MINUTE)
    rewound(world, ToBucket(min(done) - 1))
    assert not world.sqlite.jobs(world.options.shard)
    world.start()
    planned = world.sqlite.jobs(world.options.shard)
    assert {job.bucket for job in planned} >= set(done)
    assert all(job.state is JobState.PENDING and (job.plan, job.epoch) != done.get(job.bucket) for job in planned)
    for _ in range(5):
        world.work()
        world.pass_time(1_000)
        world.settle()
    assert world.is_active()
    world.check_all_found()
