"""Ownership of shards: one owner at a time, the last to take it, and only that owner can write."""

from dataclasses import replace
from itertools import cycle, repeat

import pytest

from strandline.store.protocol import Fenced, Store
from strandline.store.rows import Lifetime, Ownership, ShardId, ShardState
from support.store_contract import cut, fresh_owner, fresh_shard, group_row, manifest_write, race, state_of, taken

pytestmark = pytest.mark.contract


def test_a_shard_without_an_owner_has_no_state_and_no_manifest(store: Store, shard: ShardId) -> None:
    assert store.state(shard) is None
    assert store.manifest(shard) is None


def test_the_first_to_take_a_shard_gives_it_its_state(store: Store, other_store: Store, shard: ShardId) -> None:
    ownership = store.take(shard, "owner-a", None, now=1_234, topic_id="topic-1")
    assert ownership == Ownership(shard, 1, "owner-a")
    expected = ShardState(epoch=1, owner="owner-a", seen_at=1_234, topic_id="topic-1", next_part_id=0)
    assert store.state(shard) == expected
    assert other_store.state(shard) == expected


def test_taking_raises_the_epoch_and_keeps_topic_and_part_ids(store: Store, shard: ShardId) -> None:
    first = taken(store, shard)
    store.commit(first, manifest_write(next_part_id=77))
    second = store.take(shard, "owner-b", state_of(store, shard), now=5_000, topic_id="another topic")
    assert second == Ownership(shard, first.epoch + 1, "owner-b")
    assert store.state(shard) == ShardState(
        epoch=2, owner="owner-b", seen_at=5_000, topic_id="topic-1", next_part_id=77
    )


def test_a_shard_whose_owner_stopped_can_be_taken(store: Store, shard: ShardId) -> None:
    store.touch(taken(store, shard), None, 1)
    state = state_of(store, shard)
    assert state.seen_at is None
    assert store.take(shard, "owner-b", state, now=5_000, topic_id="topic-1") == Ownership(shard, 2, "owner-b")


def test_taking_a_shard_after_an_outdated_state_is_refused(store: Store, shard: ShardId) -> None:
    taken(store, shard)
    stale = state_of(store, shard)
    winner = taken(store, shard)
    before = state_of(store, shard)
    for after in (None, stale, replace(before, owner="another owner"), replace(before, epoch=before.epoch + 1)):
        assert store.take(shard, fresh_owner(), after, now=9_000, topic_id="topic-1") is None
    assert store.state(shard) == before
    store.touch(winner, 10_000, 1)


def test_a_shard_without_a_state_is_not_taken_after_one(store: Store, shard: ShardId) -> None:
    made_up_state = ShardState(epoch=0, owner="", seen_at=None, topic_id="topic-1", next_part_id=0)
    assert store.take(shard, fresh_owner(), made_up_state, now=1_000, topic_id="topic-1") is None
    assert store.state(shard) is None


def test_only_epoch_and_owner_decide_whether_the_state_is_still_the_same(store: Store, shard: ShardId) -> None:
    first = taken(store, shard)
    seen = state_of(store, shard)
    store.touch(first, 99_000, 1)
    store.commit(first, manifest_write(next_part_id=5, topic_id="topic-2"))
    assert store.take(shard, "owner-b", seen, now=100_000, topic_id="topic-1") == Ownership(shard, 2, "owner-b")
    assert state_of(store, shard).topic_id == "topic-2"


def test_exactly_one_of_concurrent_takes_of_a_shard_succeeds(store: Store, other_store: Store, shard: ShardId) -> None:
    def take(here: Store, after: ShardState | None, taker: str) -> Ownership | None:
        return here.take(shard, taker, after, now=1_000, topic_id="topic-1")

    # The first round is for a shard without a state.
    for epoch in range(1, 6):
        owners = [fresh_owner() for _ in range(8)]
        results = race(take, cycle([store, other_store]), repeat(store.state(shard)), owners)
        winners = [result for result in results if result is not None]
        state = state_of(store, shard)
        assert winners == [Ownership(shard, state.epoch, state.owner)]
        assert state.epoch == epoch


def test_a_touch_records_a_heartbeat_or_the_owners_stop(store: Store, shard: ShardId, owner: Ownership) -> None:
    before = state_of(store, shard)
    assert before.beats == 0
    store.touch(owner, 20_000, 1)
    assert store.state(shard) == replace(before, seen_at=20_000, beats=1)
    store.touch(owner, None, 1)
    assert store.state(shard) == replace(before, seen_at=None, beats=1)
    store.touch(owner, 30_000, 2**62)
    assert store.state(shard) == replace(before, seen_at=30_000, beats=2**62)


def test_a_new_owner_counts_its_heartbeats_from_zero(store: Store, shard: ShardId, owner: Ownership) -> None:
    store.touch(owner, 20_000, 9)
    taken(store, shard)
    assert state_of(store, shard).beats == 0


def test_a_former_owner_can_not_write(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    fenced = taken(store, shard)
    store.commit(fenced, manifest_write(cuts=(cut(7, lasting),), next_part_id=10))
    taken(store, shard, now=50_000)
    before = store.manifest(shard)
    late = manifest_write(
        cuts=(cut(7, lasting, end=999), cut(8, lasting)),
        groups=(group_row(8, 0, lasting),),
        next_part_id=1_000,
        topic_id="topic-2",
    )
    for write in (late, manifest_write(next_part_id=1_000), manifest_write(topic_id="topic-2"), manifest_write()):
        with pytest.raises(Fenced, match=str(shard)):
            store.commit(fenced, write)
    for seen_at in (60_000, None):
        with pytest.raises(Fenced, match=str(shard)):
            store.touch(fenced, seen_at, 1)
    assert store.manifest(shard) == before


def test_both_epoch_and_owner_must_be_right_to_write(store: Store, shard: ShardId, owner: Ownership) -> None:
    before = store.manifest(shard)
    for wrong in (
        replace(owner, owner="another owner"),
        replace(owner, epoch=owner.epoch - 1),
        replace(owner, epoch=owner.epoch + 1),
    ):
        with pytest.raises(Fenced):
            store.touch(wrong, 2_000, 1)
        with pytest.raises(Fenced):
            store.commit(wrong, manifest_write(next_part_id=3))
    assert store.manifest(shard) == before


def test_a_shard_without_an_owner_can_not_be_written(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    never_taken = Ownership(shard, 1, "owner-a")
    with pytest.raises(Fenced):
        store.touch(never_taken, 1_000, 1)
    with pytest.raises(Fenced):
        store.commit(never_taken, manifest_write(cuts=(cut(1, lasting),), next_part_id=3))
    assert store.state(shard) is None
    assert store.manifest(shard) is None


def test_ownership_of_each_shard_is_separate(store: Store, lasting: Lifetime) -> None:
    here = fresh_shard()
    neighbour, elsewhere = ShardId(here.dataset, here.shard + 1), ShardId(fresh_shard().dataset, here.shard)
    owner = taken(store, here)
    assert store.state(neighbour) is None
    assert store.state(elsewhere) is None
    taken(store, neighbour)
    taken(store, elsewhere)
    store.commit(owner, manifest_write(cuts=(cut(1, lasting),)))
    with pytest.raises(Fenced):
        store.commit(replace(owner, shard=neighbour), manifest_write(cuts=(cut(1, lasting),)))
