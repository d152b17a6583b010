"""A compare-and-set may have been applied even if its answer was lost: the owner of a shard must be determined all the
same.
"""

from contextlib import closing

import pytest
from cassandra import OperationTimedOut, ReadTimeout, Unavailable, WriteFailure, WriteTimeout, WriteType
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.protocol import ErrorMessage

from strandline.clock import ManualClock
from strandline.store.cassandra.retries import RetryPolicy
from strandline.store.cassandra.store import CassandraStore
from strandline.store.connection import CassandraConnection
from strandline.store.protocol import Fenced, StoreUnavailable
from strandline.store.rows import DatasetShape, Lifetime, Ownership, ShardId
from support.cassandra_store import LossySession, Lost, open_lossy
from support.store_contract import cut, manifest_write, state_of, taken

pytestmark = pytest.mark.system

UPDATE = 'UPDATE "store_tests".manifest'
CAS_RESULT_UNKNOWN = 0x1700

ERRORS = [
    WriteTimeout("contention", write_type=WriteType.CAS),
    WriteTimeout("the commit came too late", write_type=WriteType.SIMPLE),
    WriteFailure("a replica failed", write_type=WriteType.CAS),
    ReadTimeout("no replica read the condition in time"),
    Unavailable("a replica went away"),
    OperationTimedOut(),
    ConnectionShutdown("the connection broke"),
    NoHostAvailable("all tried", {"127.0.0.1": ConnectionShutdown("the connection broke")}),
    ErrorMessage(CAS_RESULT_UNKNOWN, "CAS operation result is unknown", None),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("applied", [True, False])
def test_a_take_whose_answer_was_lost_is_found_or_done_again(
    store: CassandraStore, session: LossySession, shard: ShardId, applied: bool, error: Exception
) -> None:
    session.lose(UPDATE, Lost(applied, error))
    assert store.take(shard, "owner-a", None, now=1, topic_id="t") == Ownership(shard, 1, "owner-a")
    assert (state_of(store, shard).epoch, state_of(store, shard).owner) == (1, "owner-a")
    session.lose(UPDATE, Lost(applied, error), Lost(applied, error))
    after = state_of(store, shard)
    assert store.take(shard, "owner-b", after, now=2, topic_id="t") == Ownership(shard, 2, "owner-b")
    assert (state_of(store, shard).epoch, state_of(store, shard).owner) == (2, "owner-b")


def test_a_lost_take_is_not_confirmed_by_the_same_epoch_of_another_owner(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, shard: ShardId, lasting: Lifetime
) -> None:
    """A's take times out and was not applied; B takes; A then reads the same epoch that it wanted to write."""
    for _ in range(2):
        after = store.state(shard)
        epoch = 1 if after is None else after.epoch + 1
        session.lose(UPDATE, Lost(applied=False, then=lambda: taken(other_store, shard)))
        assert store.take(shard, "owner-a", after, now=1, topic_id="t") is None
        assert state_of(store, shard).epoch == epoch
        with pytest.raises(Fenced):
            store.commit(Ownership(shard, epoch, "owner-a"), manifest_write(cuts=(cut(1, lasting),)))


def test_a_take_that_was_applied_and_then_overtaken_has_failed(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, shard: ShardId
) -> None:
    session.lose(UPDATE, Lost(applied=True, then=lambda: taken(other_store, shard)))
    assert store.take(shard, "owner-a", None, now=1, topic_id="t") is None
    assert state_of(store, shard).epoch == 2


@pytest.mark.parametrize("applied", [True, False])
def test_a_heartbeat_whose_answer_was_lost_succeeds(
    store: CassandraStore, session: LossySession, shard: ShardId, applied: bool
) -> None:
    owner = taken(store, shard)
    for seen_at in (77_000, None):
        session.lose(UPDATE, Lost(applied))
        store.touch(owner, seen_at, 1)
        assert state_of(store, shard).seen_at == seen_at


def test_a_heartbeat_after_a_take_over_raises_fenced(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, shard: ShardId
) -> None:
    owner = taken(store, shard)
    session.lose(UPDATE, Lost(applied=False, then=lambda: taken(other_store, shard, now=5_000)))
    with pytest.raises(Fenced, match=str(shard)):
        store.touch(owner, 77_000, 1)
    assert state_of(store, shard).seen_at == 5_000


@pytest.mark.parametrize("applied", [True, False])
def test_a_dataset_whose_answer_to_creation_was_lost_is_created_once(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, shard: ShardId, applied: bool
) -> None:
    shape = DatasetShape(shard.dataset, 3_600_000, 16, "xxh3-128", 8)
    session.lose("INSERT", Lost(applied))
    assert store.create_dataset(shape) == shape
    assert other_store.dataset(shard.dataset) == shape


def test_a_missing_answer_is_reported_with_the_request_and_the_address(
    connection: CassandraConnection, shard: ShardId
) -> None:
    clock = ManualClock()
    store, session = open_lossy(connection, clock=clock, retry_policy=RetryPolicy(deadline=30.0))
    with closing(store):
        session.lose(UPDATE, *[Lost(applied=False)] * 1_000)
        begun = clock.monotonic()
        where = r"Cassandra at 127\.0\.0\.1:\d+ did not answer a request to take shard"
        with pytest.raises(StoreUnavailable, match=where + r" .*OperationTimedOut.* \(tried \d+ times in 2\d\.\d s\)"):
            store.take(shard, "owner-a", None, now=1, topic_id="t")
        assert 25 < clock.monotonic() - begun < 30
        assert store.state(shard) is None
