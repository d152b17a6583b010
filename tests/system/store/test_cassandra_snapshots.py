"""A manifest is read as of one moment, however many pages it has and whatever is committed meanwhile."""

import pytest

from strandline.clock import SystemClock
from strandline.store.cassandra.statements import MANIFEST
from strandline.store.cassandra.store import CassandraStore
from strandline.store.rows import ManifestRows, ManifestWrite, Ownership, ShardId
from support.cassandra_store import LossySession, nothing
from support.store_contract import LASTING, cut, taken

pytestmark = pytest.mark.system

PAGE = "SELECT epoch"
STATE = "SELECT DISTINCT"


@pytest.fixture
def owner(other_store: CassandraStore, shard: ShardId) -> Ownership:
    return taken(other_store, shard)


def commit(store: CassandraStore, owner: Ownership, buckets: range, number: int) -> None:
    """Rows that all say the same number as the next part id."""
    lasting = SystemClock().now_ms() + LASTING
    cuts = tuple(cut(bucket, lasting, end=number) for bucket in buckets)
    store.commit(owner, ManifestWrite(cuts=cuts, next_part_id=number))


def numbers(rows: ManifestRows | None) -> set[int]:
    """The number that each row, and the state, is from."""
    assert rows is not None
    return {row.end for row in rows.cuts} | {rows.state.next_part_id}


def test_pages_between_which_something_was_committed_are_read_again(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership
) -> None:
    all_buckets = range(MANIFEST.page + 500)
    commit(other_store, owner, all_buckets, 1)
    session.meanwhile(PAGE, nothing, lambda: commit(other_store, owner, all_buckets, 2))
    rows = store.manifest(owner.shard)
    assert numbers(rows) == {2}
    assert rows is not None
    assert len(rows.cuts) == len(all_buckets)
    assert session.count(PAGE) == 4


def test_a_touch_between_pages_disturbs_nobody(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership
) -> None:
    commit(other_store, owner, range(MANIFEST.page + 500), 1)
    session.meanwhile(PAGE, nothing, lambda: other_store.touch(owner, 77_000))
    assert numbers(store.manifest(owner.shard)) == {1}
    assert session.count(PAGE) == 2


@pytest.mark.parametrize("state_reads_before", [0, 1])
def test_a_state_that_no_row_brought_along_belongs_to_the_rows(
    store: CassandraStore,
    session: LossySession,
    other_store: CassandraStore,
    owner: Ownership,
    state_reads_before: int,
) -> None:
    before = [nothing] * state_reads_before
    session.meanwhile(STATE, *before, lambda: commit(other_store, owner, range(5), 3))
    rows = store.manifest(owner.shard)
    assert numbers(rows) == {3}
    assert rows is not None
    assert len(rows.cuts) == 5
