"""Guarantees of the order in which a bucket is stored: nothing is referenced before it is stored, nothing counts as
stored before it is committed, and no two owners write to the same place.
"""

from collections.abc import Callable

import pytest

from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import IndexBucketOf, ManifestWrite, SegmentsOf
from support.shard_world import (
    MINUTE,
    Crash,
    StoreCall,
    World,
    group_fails,
    no_fault,
    other_group,
    produce_everywhere,
)

pytestmark = pytest.mark.simulation


def commits(call: StoreCall) -> ManifestWrite | None:
    return call.arguments[1] if call.name == "commit" else None


def test_a_row_is_committed_after_all_segments_and_the_index_bucket_that_it_references(world: World) -> None:
    world.start()
    produce_everywhere(world)
    shard, named = world.options.shard, {"segments": 0, "index rows": 0}

    def look(call: StoreCall) -> None:
        write = commits(call)
        for row in write.groups if write is not None else ():
            segments = list(world.sqlite.segments(SegmentsOf(shard, row.bucket, row.group, row.attempt)))
            assert len(segments) == row.segments
            named["segments"] += row.segments
            if row.index is not None:
                rows = list(world.sqlite.index_bucket(IndexBucketOf(shard, row.bucket, row.index.attempt)))
                assert len(rows) == row.index.rows
                named["index rows"] += row.index.rows

    world.store.before = look
    world.pass_hours(2)
    assert all(named.values()), named


@pytest.mark.parametrize("fails", [lambda write: write.cuts, lambda write: write.groups], ids=["cuts", "groups"])
def test_uncommitted_rows_do_not_count_as_stored(world: World, fails: Callable[[ManifestWrite], object]) -> None:
    """Neither in the owner's view, nor in its checkpoint, nor for Kafka's lag tools."""
    world.start()
    produce_everywhere(world)
    world.pass_hours(1)
    checkpoint, mirrored = world.running.view.lowest_checkpoint, world.log.mirrored

    def refuse(call: StoreCall) -> None:
        write = commits(call)
        if write is not None and fails(write):
            raise StoreUnavailable("no answer")

    world.store.before = refuse
    produce_everywhere(world)
    world.pass_hours(1)
    assert world.status.counters.store_retries > 0
    view, manifest = world.running.view.rows(), world.manifest()
    assert (view.cuts, view.groups) == (manifest.cuts, manifest.groups)
    assert (world.running.view.lowest_checkpoint, world.log.mirrored) == (checkpoint, mirrored)
    world.store.before = no_fault
    world.pass_hours(1)
    assert world.running.view.lowest_checkpoint > checkpoint


def test_the_mirrored_offset_is_that_of_the_group_that_is_furthest_behind(world: World) -> None:
    world.start()
    stuck, first = other_group(world), world.running.bucket
    world.store.before = group_fails(stuck)
    for _ in range(2):
        produce_everywhere(world)
        world.pass_hours(1)

    def later_bucket_fails(call: StoreCall) -> None:
        if call.writes_group == stuck and call.arguments[0].bucket > first:
            raise StoreUnavailable("no answer")

    world.store.before = later_bucket_fails
    world.pass_time(MINUTE)
    world.settle()
    done = world.running.view.progress()
    assert done is not None
    assert (done.lowest, max(done.checkpoints)) == (1, 2)
    assert world.log.mirrored == 1


def test_34_an_owner_never_writes_to_the_same_place_as_a_former_owner(world: World) -> None:
    """The former owner may wake up during a call, and write again what it prepared long ago."""
    places: list[set[tuple[str, object]]] = []
    for _ in range(3):
        written: set[tuple[str, object]] = set()

        def note(call: StoreCall, written: set[tuple[str, object]] = written) -> None:
            if call.name in {"write_segments", "write_index_bucket"}:
                written.add((call.name, call.arguments[0]))
            if call.name == "commit" and any(row.index for row in call.arguments[1].groups):
                raise Crash

        world.start()
        produce_everywhere(world)
        world.store.before = note
        with pytest.raises(Crash):
            world.pass_hours(1)
        places.append(written)
        world.crash()
    assert all(places)
    assert not places[0] & places[1]
    assert not places[1] & places[2]
    assert not places[0] & places[2]
