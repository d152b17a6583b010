"""A manifest is read without holes, regardless of its number of pages and of concurrent commits."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from strandline.store.cassandra.statements import MANIFEST
from strandline.store.cassandra.store import CassandraStore
from strandline.store.rows import Lifetime, ManifestRows, Ownership, ShardId
from support.cassandra_store import LossySession, do_nothing
from support.store_contract import LASTING, PRESENT, cut, group_row, manifest_write, taken

pytestmark = pytest.mark.system

PAGE = "SELECT epoch"
STATE = "SELECT DISTINCT"


@pytest.fixture
def owner(other_store: CassandraStore, shard: ShardId) -> Ownership:
    return taken(other_store, shard)


def commit(store: CassandraStore, owner: Ownership, buckets: range, number: int) -> None:
    """Rows that all have the same number as the next part id."""
    lasting = Lifetime.from_present(PRESENT, LASTING)
    cuts = tuple(cut(bucket, lasting, end=number) for bucket in buckets)
    store.commit(owner, manifest_write(cuts=cuts, next_part_id=number))


def numbers(rows: ManifestRows | None) -> set[int]:
    """The number in each row and in the state."""
    assert rows is not None
    return {row.end for row in rows.cuts} | {rows.state.next_part_id}


def test_pages_between_which_something_was_committed_are_read_again(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership
) -> None:
    all_buckets = range(MANIFEST.page + 500)
    commit(other_store, owner, all_buckets, 1)
    session.run_before(PAGE, do_nothing, lambda: commit(other_store, owner, all_buckets, 2))
    rows = store.manifest(owner.shard)
    assert numbers(rows) == {2}
    assert rows is not None
    assert len(rows.cuts) == len(all_buckets)
    assert session.count(PAGE) == 4


def test_a_heartbeat_between_pages_does_not_repeat_the_read(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership
) -> None:
    commit(other_store, owner, range(MANIFEST.page + 500), 1)
    session.run_before(PAGE, do_nothing, lambda: other_store.touch(owner, 77_000, 1))
    assert numbers(store.manifest(owner.shard)) == {1}
    assert session.count(PAGE) == 2


@pytest.mark.parametrize("reads_before", [0, 1])
def test_a_state_that_was_read_separately_matches_the_rows(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership, reads_before: int
) -> None:
    """Rows are committed before the state is read, or between that and the second read of the rows."""
    if reads_before:
        session.run_before(PAGE, do_nothing, lambda: commit(other_store, owner, range(5), 3))
    else:
        session.run_before(STATE, lambda: commit(other_store, owner, range(5), 3))
    rows = store.manifest(owner.shard)
    assert numbers(rows) == {3}
    assert rows is not None
    assert len(rows.cuts) == 5


def test_a_range_without_rows_is_read_while_the_owner_commits_other_buckets(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership
) -> None:
    commit(other_store, owner, range(5), 1)
    again = [lambda number=number: commit(other_store, owner, range(5), number) for number in range(2, 12)]
    session.run_before(PAGE, *again)
    rows = store.manifest(owner.shard, first=100)
    assert rows is not None
    assert not rows.cuts
    assert session.count(PAGE) == 2


GROUPS, BUCKETS = 4, 60


def small_pages(store: CassandraStore) -> None:
    """Split a manifest of some hundred rows into dozens of pages."""
    store._requests._prepared[MANIFEST].fetch_size = 7


class Committer:
    """An owner that stores group after group, each in the order of buckets, one row per commit."""

    def __init__(self, store: CassandraStore, owner: Ownership) -> None:
        self.store, self.owner = store, owner
        self.life = Lifetime.from_present(PRESENT, LASTING)
        self.begun: list[tuple[int, int]] = []
        self.stored = 0
        self.store.commit(owner, manifest_write(cuts=[cut(bucket, self.life) for bucket in range(BUCKETS)]))
        # One group is far behind, so that rows are added to old and new buckets alternately.
        self.waiting = [
            (bucket, group)
            for turn in range(2 * BUCKETS)
            for group in range(GROUPS)
            if 0 <= (bucket := turn - (BUCKETS - 1 if group == 1 else 3 * group)) < BUCKETS
        ]

    def next(self) -> None:
        """Commit the next row."""
        place = self.waiting.pop(0)
        self.begun.append(place)
        self.store.commit(self.owner, manifest_write(groups=[group_row(*place, self.life)]))
        self.stored += 1

    def check(self, rows: ManifestRows | None, *, stored_before: int) -> None:
        """Assert that a read has everything committed before it, nothing uncommitted, and no hole in any group."""
        assert rows is not None
        there = [(row.bucket, row.group) for row in rows.groups]
        assert set(self.begun[:stored_before]) <= set(there) <= set(self.begun)
        assert [row.bucket for row in rows.cuts] == list(range(BUCKETS - 1, -1, -1))
        for group in range(GROUPS):
            of_group = sorted(bucket for bucket, other in there if other == group)
            assert of_group == list(range(len(of_group))), f"group {group} has a hole"


def test_a_read_of_many_pages_ends_even_if_a_row_is_committed_before_each(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership
) -> None:
    small_pages(store)
    committer = Committer(other_store, owner)
    for _ in range(80):
        committer.next()
    session.run_before(PAGE, *[committer.next] * 100)
    rows = store.manifest(owner.shard)
    assert session.count(PAGE) >= 20, "the manifest has too few pages for this test"
    committer.check(rows, stored_before=80)
    assert committer.stored == 80 + session.count(PAGE)


def test_manifests_are_read_while_a_thread_commits_continuously(
    store: CassandraStore, other_store: CassandraStore, owner: Ownership
) -> None:
    small_pages(store)
    committer, enough, commits_meanwhile = Committer(other_store, owner), threading.Event(), 0

    def commit_on() -> None:
        while committer.waiting and not enough.is_set():
            committer.next()

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(commit_on)
        try:
            while committer.waiting:
                before = committer.stored
                rows = store.manifest(owner.shard)
                commits_meanwhile += committer.stored > before
                committer.check(rows, stored_before=before)
        finally:
            enough.set()
            writing.result()
    assert commits_meanwhile, "nothing was committed while a manifest was read"


@pytest.mark.parametrize("what", ["another owner", "a rewind", "a loss", "another topic"])
def test_a_commit_that_changes_rows_is_read_completely_or_not_at_all(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, owner: Ownership, what: str
) -> None:
    small_pages(store)
    committer = Committer(other_store, owner)
    for _ in range(120):
        committer.next()
    everywhere = sorted(committer.begun, reverse=True)
    buckets = range(0, BUCKETS, 5)
    writes = {
        "a rewind": manifest_write(
            groups=[replace(group_row(*place, committer.life), superseded=True) for place in everywhere]
        ),
        "a loss": manifest_write(cuts=[cut(bucket, committer.life, lost_to=150) for bucket in buckets]),
        "another topic": manifest_write(topic_id="topic-2"),
    }

    def change() -> None:
        if what == "another owner":
            taken(other_store, owner.shard)
        else:
            other_store.commit(owner, writes[what])

    session.run_before(PAGE, do_nothing, do_nothing, do_nothing, change)
    rows = store.manifest(owner.shard)
    pages = session.count(PAGE)
    assert rows == store.manifest(owner.shard), "it matches neither state"
    assert pages == 2 * (session.count(PAGE) - pages), "the manifest was not read again"
