"""The outcome of a commit whose answer was lost is determined, even if the shard was taken meanwhile."""

import pytest

from strandline.store.cassandra.store import CassandraStore
from strandline.store.protocol import Fenced, Store, StoreUnavailable
from strandline.store.rows import CutRow, Lifetime, ManifestWrite, Ownership, ShardId
from support.cassandra_store import LossySession, Lost
from support.store_contract import cut, group_row, manifest_write, state_of, taken

pytestmark = pytest.mark.system

COMMIT = 'UPDATE "store_tests".manifest SET epoch'


@pytest.fixture
def owner(other_store: CassandraStore, shard: ShardId) -> Ownership:
    """Ownership of `shard`."""
    return taken(other_store, shard)


@pytest.fixture
def write(lasting: Lifetime) -> ManifestWrite:
    groups = tuple(group_row(5, group, lasting) for group in range(16))
    return manifest_write(cuts=(cut(5, lasting), cut(4, lasting)), groups=groups, next_part_id=9, topic_id="topic-2")


def committed(store: Store, shard: ShardId) -> ManifestWrite:
    rows = store.manifest(shard)
    assert rows is not None
    return manifest_write(rows.cuts, rows.groups, rows.state.next_part_id, rows.state.topic_id)


def test_a_commit_that_was_applied_is_found_and_not_sent_again(
    store: CassandraStore, session: LossySession, owner: Ownership, write: ManifestWrite
) -> None:
    session.lose(COMMIT, Lost(applied=True))
    store.commit(owner, write)
    assert session.count(COMMIT) == 1
    assert committed(store, owner.shard) == write


def test_a_commit_that_was_not_applied_is_sent_again(
    store: CassandraStore, session: LossySession, owner: Ownership, write: ManifestWrite
) -> None:
    session.lose(COMMIT, Lost(applied=False), Lost(applied=False))
    store.commit(owner, write)
    assert session.count(COMMIT) == 3
    assert committed(store, owner.shard) == write


def test_existing_rows_do_not_make_a_lost_commit_look_applied(
    store: CassandraStore, session: LossySession, owner: Ownership, write: ManifestWrite
) -> None:
    store.commit(owner, manifest_write(cuts=write.cuts, groups=write.groups[:15], next_part_id=9, topic_id="topic-2"))
    session.lose(COMMIT, Lost(applied=False))
    store.commit(owner, write)
    assert committed(store, owner.shard) == write


@pytest.mark.parametrize("changed", [manifest_write(next_part_id=10), manifest_write(topic_id="topic-3")])
@pytest.mark.parametrize("applied", [True, False])
def test_values_without_rows_are_found_or_sent_again_as_well(
    store: CassandraStore, session: LossySession, owner: Ownership, changed: ManifestWrite, applied: bool
) -> None:
    session.lose(COMMIT, Lost(applied))
    store.commit(owner, changed)
    state = state_of(store, owner.shard)
    assert (state.next_part_id, state.topic_id) == (changed.next_part_id or 0, changed.topic_id or "topic-1")


def test_a_commit_with_a_lower_next_part_id_is_not_blocked_by_lost_answers(
    store: CassandraStore, session: LossySession, owner: Ownership, lasting: Lifetime
) -> None:
    store.commit(owner, manifest_write(next_part_id=50))
    session.lose(COMMIT, Lost(applied=False), Lost(applied=False))
    store.commit(owner, manifest_write(cuts=(cut(5, lasting),), next_part_id=9))
    assert committed(store, owner.shard) == manifest_write((cut(5, lasting),), (), 50, "topic-1")


def test_a_commit_that_was_applied_before_another_owner_took_the_shard_is_found(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership, write: ManifestWrite
) -> None:
    session.lose(COMMIT, Lost(applied=True, then=lambda: taken(other_store, owner.shard)))
    store.commit(owner, write)
    assert committed(store, owner.shard) == write
    with pytest.raises(Fenced):
        store.commit(owner, write)


def test_a_commit_that_was_not_applied_before_another_owner_took_the_shard_is_fenced(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership, write: ManifestWrite
) -> None:
    session.lose(COMMIT, Lost(applied=False, then=lambda: taken(other_store, owner.shard)))
    with pytest.raises(Fenced, match=f"may not write shard {owner.shard}"):
        store.commit(owner, write)
    assert committed(store, owner.shard) == manifest_write((), (), 0, "topic-1")


def test_the_same_rows_of_a_former_owner_do_not_make_a_lost_commit_look_applied(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership, write: ManifestWrite
) -> None:
    store.commit(owner, write)
    second = taken(store, owner.shard)
    session.lose(COMMIT, Lost(applied=False, then=lambda: taken(other_store, owner.shard)))
    with pytest.raises(Fenced):
        store.commit(second, write)


def test_the_outcome_of_a_commit_that_the_next_owner_overwrote_is_unknown(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership, lasting: Lifetime
) -> None:
    write = manifest_write(cuts=(cut(5, lasting),))
    over = manifest_write(cuts=(CutRow(5, 0, 0, lasting.expires, reset=True),))
    for applied in (True, False):
        mine = taken(store, owner.shard)
        session.lose(COMMIT, Lost(applied, then=lambda: other_store.commit(taken(other_store, owner.shard), over)))
        with pytest.raises(StoreUnavailable, match="can't be determined"):
            store.commit(mine, write)
        with pytest.raises(Fenced):
            store.commit(mine, write)
        assert committed(store, owner.shard).cuts == over.cuts


def test_the_outcome_of_values_without_rows_is_unknown_after_another_owner_took_the_shard(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership
) -> None:
    session.lose(COMMIT, Lost(applied=False, then=lambda: taken(other_store, owner.shard)))
    with pytest.raises(StoreUnavailable, match="can't be determined"):
        store.commit(owner, manifest_write(next_part_id=9))
    with pytest.raises(Fenced):
        store.commit(owner, manifest_write(next_part_id=9))


def test_a_commit_that_is_applied_while_its_sender_looks_for_it_is_found(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership, write: ManifestWrite
) -> None:
    """A server may still apply it when the client has stopped waiting."""
    session.lose(COMMIT, Lost(applied=False))
    session.lose("SELECT epoch", Lost(applied=True, then=lambda: other_store.commit(owner, write)))
    store.commit(owner, write)
    assert session.count(COMMIT) == 1
    assert committed(store, owner.shard) == write
