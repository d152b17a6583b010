"""Who may take a shard, and what becomes of two who want it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.shard.ownership import (
    AnotherShape,
    StillOwned,
    TakeFailed,
    Taker,
    agree_on_shape,
    check_may_take,
    take_shard,
)
from strandline.store.protocol import Fenced
from strandline.store.rows import DatasetShape, Ownership, ShardId, ShardState
from strandline.store.sqlite import SqliteStore, open_sqlite_store

pytestmark = pytest.mark.unit

SHARD = ShardId("metrics", 3)
NOW = 1_700_000_000_000
SHAPE = DatasetShape("metrics", 3_600_000, 16, "xxh3-128", 8)


def state(seen_at: int | None) -> ShardState:
    return ShardState(epoch=7, owner="somebody", seen_at=seen_at, topic_id="topic-1", next_part_id=0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    with closing(open_sqlite_store(tmp_path / "store.sqlite", clock)) as opened:
        yield opened


@pytest.mark.parametrize("seen_ago", [0, 1, 59_999, 10**9, -5_000])
def test_a_node_that_starts_may_always_take_a_shard(seen_ago: int) -> None:
    check_may_take(SHARD, state(NOW - seen_ago), Taker.NODE, NOW)


@pytest.mark.parametrize("taker", Taker)
def test_anybody_may_take_a_shard_that_nobody_has(taker: Taker) -> None:
    check_may_take(SHARD, None, taker, NOW)
    check_may_take(SHARD, state(None), taker, NOW)


@pytest.mark.parametrize(("taker", "gone_after"), [(Taker.TOOL, 30_000), (Taker.FENCED_PROCESS, 60_000)])
def test_others_wait_until_the_owner_was_not_seen_for_long_enough(taker: Taker, gone_after: int) -> None:
    for seen_ago in (0, 1, gone_after - 1):
        with pytest.raises(StillOwned):
            check_may_take(SHARD, state(NOW - seen_ago), taker, NOW)
    for seen_ago in (gone_after, gone_after + 1, 10**9):
        check_may_take(SHARD, state(NOW - seen_ago), taker, NOW)


@pytest.mark.parametrize("taker", [Taker.TOOL, Taker.FENCED_PROCESS])
def test_an_owner_that_was_seen_later_than_now_is_not_taken_for_gone(taker: Taker) -> None:
    with pytest.raises(StillOwned, match="seen 0 s ago"):
        check_may_take(SHARD, state(NOW + 10**9), taker, NOW)


def test_a_refusal_names_the_shard_its_owner_and_what_to_do() -> None:
    with pytest.raises(StillOwned, match=r"shard metrics/3 has an owner \(somebody\) that was seen 12 s ago") as caught:
        check_may_take(SHARD, state(NOW - 12_000), Taker.TOOL, NOW)
    assert "Stop that node first" in caught.value.remedy


def test_the_first_take_begins_with_the_topic_and_the_time(store: SqliteStore, clock: ManualClock) -> None:
    taken = take_shard(store, SHARD, Taker.NODE, "topic-9", clock)
    assert (taken.shard, taken.epoch) == (SHARD, 1)
    assert store.state(SHARD) == ShardState(1, taken.owner, NOW, "topic-9", 0)


def test_whoever_had_the_shard_is_fenced_and_its_topic_stays(store: SqliteStore, clock: ManualClock) -> None:
    first = take_shard(store, SHARD, Taker.NODE, "topic-1", clock)
    clock.sleep(5)
    second = take_shard(store, SHARD, Taker.NODE, "topic-2", clock)
    assert second.epoch == first.epoch + 1
    assert second.owner != first.owner
    assert store.state(SHARD) == ShardState(2, second.owner, NOW + 5_000, "topic-1", 0)
    with pytest.raises(Fenced):
        store.touch(first, NOW)
    store.touch(second, NOW)


def test_a_tool_takes_nothing_from_an_owner_that_lives(store: SqliteStore, clock: ManualClock) -> None:
    owner = take_shard(store, SHARD, Taker.NODE, "topic-1", clock)
    clock.sleep(29.999)
    with pytest.raises(StillOwned):
        take_shard(store, SHARD, Taker.TOOL, "topic-1", clock)
    store.touch(owner, clock.now_ms())
    clock.sleep(30)
    assert take_shard(store, SHARD, Taker.TOOL, "topic-1", clock).epoch == 2


def test_an_owner_that_left_is_followed_at_once(store: SqliteStore, clock: ManualClock) -> None:
    store.touch(take_shard(store, SHARD, Taker.NODE, "topic-1", clock), None)
    assert take_shard(store, SHARD, Taker.FENCED_PROCESS, "topic-1", clock).epoch == 2


class Contested:
    """A store in which others are faster, so many times. Each has left again when we look."""

    def __init__(self, store: SqliteStore, times: int, *, others_stay: bool = False) -> None:
        self.store, self.times, self.others_stay = store, times, others_stay
        self.tried: list[tuple[str, ShardState | None]] = []

    def state(self, shard: ShardId) -> ShardState | None:
        return self.store.state(shard)

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        self.tried.append((owner, after))
        if len(self.tried) <= self.times:
            other = self.store.take(shard, f"other-{len(self.tried)}", after, now=now, topic_id=topic_id)
            assert other is not None
            if not self.others_stay:
                self.store.touch(other, None)
        return self.store.take(shard, owner, after, now=now, topic_id=topic_id)


def test_a_race_that_was_lost_is_run_again_from_what_is_there_now(store: SqliteStore, clock: ManualClock) -> None:
    contested = Contested(store, 2)
    taken = take_shard(contested, SHARD, Taker.NODE, "topic-1", clock)
    assert taken.epoch == 3
    assert [after.owner if after else None for _, after in contested.tried] == [None, "other-1", "other-2"]
    assert len({owner for owner, _ in contested.tried}) == 3, "no owner's name is used twice"
    held = store.state(SHARD)
    assert held is not None
    assert held.owner == taken.owner


def test_who_loses_every_race_says_so_and_owns_nothing(store: SqliteStore, clock: ManualClock) -> None:
    contested = Contested(store, 1_000)
    with pytest.raises(TakeFailed, match="shard metrics/3 was taken by others 5 times in a row"):
        take_shard(contested, SHARD, Taker.NODE, "topic-1", clock)
    held = store.state(SHARD)
    assert held is not None
    assert held.owner == f"other-{len(contested.tried)}"


def test_a_tool_that_loses_a_race_does_not_take_the_shard_from_who_won(store: SqliteStore, clock: ManualClock) -> None:
    contested = Contested(store, 1, others_stay=True)
    with pytest.raises(StillOwned, match="other-1"):
        take_shard(contested, SHARD, Taker.TOOL, "topic-1", clock)
    assert len(contested.tried) == 1


def test_a_dataset_is_made_as_wanted_and_found_again(store: SqliteStore) -> None:
    assert agree_on_shape(store, SHAPE) == SHAPE
    assert agree_on_shape(store, SHAPE) == SHAPE
    assert store.dataset("metrics") == SHAPE


def test_partitions_may_have_been_added_and_those_that_were_there_first_are_told(store: SqliteStore) -> None:
    agree_on_shape(store, SHAPE)
    assert agree_on_shape(store, replace(SHAPE, partitions=12)).partitions == 8


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"flush_interval": 1_800_000}, "dataset.flush_interval = 3600000 ms, and now it is 1800000 ms"),
        ({"groups": 8}, "dataset.groups = 16, and now it is 8"),
        ({"key_hash": "md5"}, "the key hash = xxh3-128, and now it is md5"),
    ],
)
def test_what_was_stored_under_another_shape_is_refused(
    store: SqliteStore, changed: dict[str, object], message: str
) -> None:
    agree_on_shape(store, SHAPE)
    with pytest.raises(AnotherShape) as caught:
        agree_on_shape(store, replace(SHAPE, **changed))
    assert caught.value.message == f"dataset 'metrics' was made with {message}"
    assert store.dataset("metrics") == SHAPE
