"""Rewinds concurrent with other users of the shard: its owner, a node that starts, its local copy, replay workers."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from strandline.index.vm import start_vm
from strandline.node.shard.index_storage import LuceneStorage
from strandline.node.shard.options import ReplayMode
from strandline.node.shard.ownership import StillOwned
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Status
from strandline.recovery.rewinding import ToBucket
from strandline.store.jobs import JobState
from strandline.store.protocol import Fenced
from support.rewound_worlds import check_stored_exactly_once, rewind_world, stop_shard, superseded, world_with_history
from support.shard_world import (
    HOUR,
    MINUTE,
    POLICY,
    START,
    StoreCall,
    World,
    no_fault,
    produce_everywhere,
)

pytestmark = pytest.mark.simulation

FIRST = START // HOUR  # The bucket of the first record.
LASTING = replace(POLICY, retention=48 * HOUR)  # Nothing is purged within a test.


def test_28_an_owned_shard_is_rewound_only_by_force_which_fences_its_owner(world: World) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)
    owner, before = world.running, world.manifest()
    owner.flusher.step()
    with pytest.raises(StillOwned):
        rewind_world(world, ToBucket(FIRST))
    assert world.manifest() == before
    rewind_world(world, ToBucket(FIRST), take=True)
    world.pass_time(2 * HOUR)
    owner.step()
    with pytest.raises(Fenced):
        owner.flusher.step()
    world.start()
    check_stored_exactly_once(world)


def test_a_node_that_starts_during_a_rewind_stops_it(world: World) -> None:
    world_with_history(world)

    def start(call: StoreCall) -> None:
        if call.name == "commit" and superseded(world):
            world.store.after = no_fault
            world.start(take=True)

    world.store.after = start
    with pytest.raises(Fenced):
        rewind_world(world, ToBucket(FIRST + 1), most_rows=4)
    assert superseded(world) == {FIRST + 4}
    check_stored_exactly_once(world)
    assert world.is_active()


def started_with_lucene(world: World) -> LuceneStorage:
    options = world.options
    home = LuceneStorage(options.shard, options.folder / "index", options.policy.retention, 16, 1.0, world.clock)
    world.status = Status()
    world.shard = Shard.start(world.parts(home), world.status)  # type: ignore[arg-type]  # a home is a home
    return home


@pytest.mark.parametrize(("to", "is_used"), [(2, False), (5, True)])
def test_a_local_copy_of_a_superseded_bucket_is_not_used_and_an_older_one_is_valid(
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
        world.running.flusher.release()
    # Another host continues, with a separate copy.
    world.start()
    world.pass_hours(3)
    stop_shard(world)
    rewind_world(world, ToBucket(FIRST + to))
    with capture_logs() as lines, closing(started_with_lucene(world)):
        assert any("loading the index from the store" in line["event"] for line in lines) is not is_used
        check_stored_exactly_once(world)
        assert world.keys().keys() == keys.keys()
        assert superseded(world) == set()


def test_a_rewind_is_planned_with_the_manifest_after_the_shard_was_taken(world: World) -> None:
    """An owner may have stored more in the meantime."""
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)

    def continue_owner(call: StoreCall) -> None:
        if call.name == "take":
            world.store.before = no_fault
            world.pass_hours(1)

    world.store.before = continue_owner
    assert rewind_world(world, ToBucket(FIRST), take=True).last_bucket == FIRST + 2
    assert superseded(world) == {FIRST, FIRST + 1, FIRST + 2}


def test_records_that_workers_had_read_are_read_again_after_a_rewind(world: World) -> None:
    """The result of an earlier job must not replace reading the records again."""
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
    rewind_world(world, ToBucket(min(done) - 1))
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
