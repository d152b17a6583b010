"""Taking a shard, and races between processes."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.shard.ownership import (
    OWNER_TIMEOUT_S,
    AnotherShape,
    StillOwned,
    TakeFailed,
    attempt_prefix,
    ensure_dataset,
    take_shard,
)
from strandline.store.protocol import Fenced
from strandline.store.rows import DatasetShape, Ownership, ShardId, ShardState
from strandline.store.sqlite import SqliteStore, open_sqlite_store
from support.fake_machine import FakeProcess

pytestmark = pytest.mark.unit

SHARD = ShardId("metrics", 3)
NOW = 1_700_000_000_000
SHAPE = DatasetShape("metrics", 3_600_000, 16, "xxh3-128", 8)


def local_process(name: str, *dead: str) -> FakeProcess:
    """A process that sees some other processes of its machine as dead."""
    return FakeProcess(f"here/boot/namespace/{name}/0", {f"here/boot/namespace/{other}/0" for other in dead})


class RemoteProcess(FakeProcess):
    """A process on another machine, which can't see other processes."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}/boot/namespace/7/0", set())

    def is_alive(self, worker: str) -> bool:
        return worker == self.this_worker()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    with closing(open_sqlite_store(tmp_path / "store.sqlite", clock)) as opened:
        yield opened


def test_the_first_owner_is_stored_with_the_topic_and_the_time(store: SqliteStore, clock: ManualClock) -> None:
    ownership = take_shard(store, SHARD, "topic-9", clock)
    assert (ownership.shard, ownership.epoch) == (SHARD, 1)
    assert store.state(SHARD) == ShardState(1, ownership.owner, NOW, "topic-9", 0)


def test_a_released_shard_is_taken_at_once(store: SqliteStore, clock: ManualClock) -> None:
    store.touch(take_shard(store, SHARD, "topic-1", clock, local_process("1")), None, 1)
    assert take_shard(store, SHARD, "topic-1", clock, local_process("2")).epoch == 2
    assert clock.now_ms() == NOW


def test_a_shard_of_a_dead_owner_is_taken_at_once(store: SqliteStore, clock: ManualClock) -> None:
    take_shard(store, SHARD, "topic-1", clock, local_process("1"))
    assert take_shard(store, SHARD, "topic-1", clock, local_process("2", "1")).epoch == 2
    assert clock.now_ms() == NOW


def test_a_process_takes_its_own_shard_again(store: SqliteStore, clock: ManualClock) -> None:
    take_shard(store, SHARD, "topic-1", clock, local_process("1"))
    assert take_shard(store, SHARD, "topic-1", clock, local_process("1")).epoch == 2


def test_a_shard_of_a_live_owner_on_the_same_machine_is_refused_at_once(store: SqliteStore, clock: ManualClock) -> None:
    take_shard(store, SHARD, "topic-1", clock, local_process("1"))
    with pytest.raises(StillOwned) as caught:
        take_shard(store, SHARD, "topic-1", clock, local_process("2"))
    assert caught.value.message == (
        "shard metrics/3 has a live owner: process 1 on here, seen at 2023-11-14T22:13:20Z by its clock"
    )
    assert clock.now_ms() == NOW


def test_a_forced_take_over_from_a_live_owner_keeps_the_topic(store: SqliteStore, clock: ManualClock) -> None:
    first = take_shard(store, SHARD, "topic-1", clock, local_process("1"))
    clock.sleep(5)
    second = take_shard(store, SHARD, "topic-2", clock, local_process("2"), by_force=True)
    assert second.epoch == first.epoch + 1
    assert second.owner != first.owner
    assert store.state(SHARD) == ShardState(2, second.owner, NOW + 5_000, "topic-1", 0)
    with pytest.raises(Fenced):
        store.touch(first, NOW, 1)
    store.touch(second, NOW, 1)


@pytest.mark.parametrize("clock_error", [0, 10**9, -(10**9)])
def test_an_owner_on_another_machine_is_watched_for_a_term_regardless_of_its_clock(
    store: SqliteStore, clock: ManualClock, clock_error: int
) -> None:
    owner = take_shard(store, SHARD, "topic-1", clock, RemoteProcess("a"))
    store.touch(owner, NOW + clock_error, 1)
    messages: list[str] = []
    assert take_shard(store, SHARD, "topic-1", clock, RemoteProcess("b"), on_wait=messages.append).epoch == 2
    assert clock.now_ms() - NOW == OWNER_TIMEOUT_S * 1000
    assert len(messages) == OWNER_TIMEOUT_S
    assert "whether the owner is gone: process 7 on a" in messages[0]


def test_a_shard_of_an_owner_elsewhere_with_heartbeats_is_refused(store: SqliteStore, clock: ManualClock) -> None:
    """Heartbeats count, although the owner's clock does not advance."""
    owner = take_shard(store, SHARD, "topic-1", clock, RemoteProcess("a"))
    store.touch(owner, NOW, 1)

    def beat(_reason: str) -> None:
        if clock.now_ms() - NOW >= 9_000:
            store.touch(owner, NOW, 2)

    with pytest.raises(StillOwned, match="process 7 on a"):
        take_shard(store, SHARD, "topic-1", clock, RemoteProcess("b"), on_wait=beat)
    assert clock.now_ms() - NOW < 15_000, "the watch ends at the first heartbeat"


def test_an_owner_of_the_previous_version_is_judged_by_its_heartbeat_times(
    store: SqliteStore, clock: ManualClock
) -> None:
    owner = store.take(SHARD, "5f0c", None, now=NOW, topic_id="topic-1")
    assert owner is not None

    def beat(_reason: str) -> None:
        store.touch(owner, clock.now_ms() + 1, 0)

    with pytest.raises(StillOwned, match="owner 5f0c, seen at"):
        take_shard(store, SHARD, "topic-1", clock, RemoteProcess("b"), on_wait=beat)


def test_a_shard_released_during_the_watch_is_taken(store: SqliteStore, clock: ManualClock) -> None:
    owner = take_shard(store, SHARD, "topic-1", clock, RemoteProcess("a"))

    def release(_reason: str) -> None:
        store.touch(owner, None, 1)

    assert take_shard(store, SHARD, "topic-1", clock, RemoteProcess("b"), on_wait=release).epoch == 2
    assert clock.now_ms() - NOW == 1_000


@pytest.mark.parametrize(("call", "is_answered"), [(1, True), (3, False)])
def test_a_shard_taken_and_released_while_a_start_stalled_is_taken(
    store: SqliteStore, clock: ManualClock, call: int, *, is_answered: bool
) -> None:
    """It wrote between two observations of the start, but possibly longer ago than the timeout."""
    take_shard(store, SHARD, "topic-1", clock, RemoteProcess("a"))
    stalling = StallingStore(store, clock, call, is_answered=is_answered)
    ownership = take_shard(stalling, SHARD, "topic-1", clock, RemoteProcess("b"))
    assert stalling.third_owner is not None
    assert ownership.epoch == stalling.third_owner.epoch + 1


def test_a_live_owner_keeps_its_shard_when_a_start_stalls_with_an_outdated_answer(
    store: SqliteStore, clock: ManualClock
) -> None:
    """By the start's clock, the timeout has passed since its first observation, but there was no observation after
    that.
    """
    owner = take_shard(store, SHARD, "topic-1", clock, RemoteProcess("a"))
    beats = 0

    class SuspendedStore:
        """Is suspended after the third answer, while the owner is alive."""

        calls, take = 0, store.take

        def state(self, shard: ShardId) -> ShardState | None:
            state = store.state(shard)
            self.calls += 1
            if self.calls == 3:
                clock.sleep(3600)
                beat("meanwhile")
            return state

    def beat(_reason: str) -> None:
        nonlocal beats
        if clock.monotonic() >= 1800:
            beats += 1
            store.touch(owner, clock.now_ms(), beats)

    with pytest.raises(StillOwned, match="process 7 on a"):
        take_shard(SuspendedStore(), SHARD, "topic-1", clock, RemoteProcess("b"), on_wait=beat)


def test_a_shard_taken_by_a_live_owner_while_a_start_stalled_is_refused(store: SqliteStore, clock: ManualClock) -> None:
    take_shard(store, SHARD, "topic-1", clock, RemoteProcess("a"))
    stalling = StallingStore(store, clock, 3, is_answered=False)

    def beat(_reason: str) -> None:
        if stalling.third_owner is not None:
            store.touch(stalling.third_owner, NOW, int(clock.monotonic()))

    with pytest.raises(StillOwned, match="process 7 on c"):
        take_shard(stalling, SHARD, "topic-1", clock, RemoteProcess("b"), on_wait=beat)


def test_a_cancelled_start_ends_the_watch(store: SqliteStore, clock: ManualClock) -> None:
    take_shard(store, SHARD, "topic-1", clock, RemoteProcess("a"))

    def stop(_reason: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_shard(store, SHARD, "topic-1", clock, RemoteProcess("b"), on_wait=stop)


def test_attempts_have_names_that_are_unique_to_an_owner(store: SqliteStore, clock: ManualClock) -> None:
    first = take_shard(store, SHARD, "topic-1", clock, local_process("1"))
    second = take_shard(store, SHARD, "topic-1", clock, local_process("1"))
    assert attempt_prefix(first) != attempt_prefix(second)
    assert "/" not in attempt_prefix(first)
    # Epochs start from one again if a keyspace was restored or recreated.
    assert attempt_prefix(first) != attempt_prefix(replace(second, epoch=first.epoch))


class StallingStore:
    """A store as seen by a process that is suspended for an hour in one of its calls, before or after the answer.
    Meanwhile a third process takes the shard.
    """

    def __init__(self, store: SqliteStore, clock: ManualClock, call: int, *, is_answered: bool) -> None:
        self.store, self.clock, self.calls_left, self.is_answered = store, clock, call, is_answered
        self.third_owner: Ownership | None = None

    def state(self, shard: ShardId) -> ShardState | None:
        state = self.store.state(shard)
        self.calls_left -= 1
        if self.calls_left == 0:
            self.third_owner = take_shard(self.store, shard, "topic-1", self.clock, RemoteProcess("c"), by_force=True)
            self.clock.sleep(3600)
        return state if self.is_answered else self.store.state(shard)

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        return self.store.take(shard, owner, after, now=now, topic_id=topic_id)


class ContestedStore:
    """A store in which other processes win this many races. Each has released the shard by the next observation."""

    def __init__(self, store: SqliteStore, times: int, *, others_keep_it: bool = False) -> None:
        self.store, self.times, self.others_keep_it = store, times, others_keep_it
        self.attempts: list[tuple[str, ShardState | None]] = []
        self.other: Ownership | None = None
        self.beats = 0

    def beat(self, _reason: str) -> None:
        """The other owner is alive."""
        assert self.other is not None
        self.beats += 1
        self.store.touch(self.other, NOW, self.beats)

    def state(self, shard: ShardId) -> ShardState | None:
        return self.store.state(shard)

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        self.attempts.append((owner, after))
        if len(self.attempts) <= self.times:
            other = self.store.take(shard, f"other-{len(self.attempts)}", after, now=now, topic_id=topic_id)
            assert other is not None
            self.other = other
            if not self.others_keep_it:
                self.store.touch(other, None, 1)
        return self.store.take(shard, owner, after, now=now, topic_id=topic_id)


def test_a_lost_race_is_retried_from_the_current_row(store: SqliteStore, clock: ManualClock) -> None:
    contested = ContestedStore(store, 2)
    ownership = take_shard(contested, SHARD, "topic-1", clock)
    assert ownership.epoch == 3
    assert [after.owner if after else None for _, after in contested.attempts] == [None, "other-1", "other-2"]
    assert len({owner for owner, _ in contested.attempts}) == 3, "no owner's name is used twice"
    state = store.state(SHARD)
    assert state is not None
    assert state.owner == ownership.owner


def test_a_start_that_loses_every_race_fails_and_owns_nothing(store: SqliteStore, clock: ManualClock) -> None:
    contested = ContestedStore(store, 1_000)
    with pytest.raises(TakeFailed, match="shard metrics/3 was taken by other processes 5 times in a row"):
        take_shard(contested, SHARD, "topic-1", clock)
    state = store.state(SHARD)
    assert state is not None
    assert state.owner == f"other-{len(contested.attempts)}"


def test_the_loser_of_a_race_does_not_take_the_shard_from_the_winner(store: SqliteStore, clock: ManualClock) -> None:
    contested = ContestedStore(store, 1, others_keep_it=True)
    with pytest.raises(StillOwned, match="other-1"):
        take_shard(contested, SHARD, "topic-1", clock, on_wait=contested.beat)
    assert len(contested.attempts) == 1


def test_a_dataset_is_created_as_requested_and_found_again(store: SqliteStore) -> None:
    assert ensure_dataset(store, SHAPE) == SHAPE
    assert ensure_dataset(store, SHAPE) == SHAPE
    assert store.dataset("metrics") == SHAPE


def test_partitions_may_be_added_and_the_initial_number_is_returned(store: SqliteStore) -> None:
    ensure_dataset(store, SHAPE)
    assert ensure_dataset(store, replace(SHAPE, partitions=12)).partitions == 8


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"flush_interval": 1_800_000}, "dataset.flush_interval = 3600000 ms, which can't be changed to 1800000 ms"),
        ({"groups": 8}, "dataset.groups = 16, which can't be changed to 8"),
        ({"key_hash": "md5"}, "the key hash = xxh3-128, which can't be changed to md5"),
    ],
)
def test_a_dataset_with_another_shape_is_refused(store: SqliteStore, changed: dict[str, object], message: str) -> None:
    ensure_dataset(store, SHAPE)
    with pytest.raises(AnotherShape) as caught:
        ensure_dataset(store, replace(SHAPE, **changed))
    assert caught.value.message == f"dataset 'metrics' was created with {message}"
    assert store.dataset("metrics") == SHAPE
