"""Properties of the tables that only Cassandra itself can show: lifetimes, tombstones, timestamps, sizes."""

import re
from contextlib import closing
from dataclasses import replace

import pytest

from strandline.clock import SystemClock
from strandline.store.batches import row_bytes
from strandline.store.cassandra.manifest_rows import cut_values, group_values
from strandline.store.cassandra.statements import WRITE_CUT, WRITE_GROUP
from strandline.store.cassandra.store import CassandraStore, store_over
from strandline.store.connection import CassandraConnection, connect
from strandline.store.jobs import JobState
from strandline.store.late_samples import MAX_COUNTS
from strandline.store.protocol import StoreRefused
from strandline.store.rows import (
    CutRow,
    IndexBucketOf,
    IndexBucketRows,
    LateSamples,
    Lifetime,
    RecordIdentity,
    Segment,
    SegmentsOf,
    ShardId,
)
from support.cassandra_store import LossySession
from support.store_contract import PRESENT, cut, group_row, job, manifest_write, series_key, taken

pytestmark = pytest.mark.system

YEAR = 365 * 86_400_000


def test_the_columns_of_the_owner_never_expire(
    store: CassandraStore, session: LossySession, shard: ShardId, lasting: Lifetime
) -> None:
    def lives() -> list[int | None]:
        row = session.execute(
            "SELECT DISTINCT TTL(epoch), TTL(owner), TTL(seen_at), TTL(beats), TTL(topic_id), TTL(next_part_id)"
            " FROM store_tests.manifest WHERE dataset = %s AND shard = %s",
            (shard.dataset, shard.shard),
        ).one()
        return list(row)

    for _ in range(2):
        owner = taken(store, shard)
        rows = (cut(5, lasting),), (group_row(5, 0, lasting),)
        for write in (manifest_write(*rows), manifest_write(*rows, 7, "topic-2"), manifest_write(*rows, 3)):
            store.commit(owner, write)
            assert lives() == [None] * 6
        for seen_at in (5_000, None):
            store.touch(owner, seen_at, 1)
            assert lives() == [None] * 6


def test_repeatedly_written_rows_leave_no_tombstones_for_reads(
    store: CassandraStore, session: LossySession, shard: ShardId, lasting: Lifetime
) -> None:
    owner = taken(store, shard)
    bare = group_row(5, 0, lasting)
    full = replace(bare, late=(LateSamples(1, 2),), index=IndexBucketRows(1, b"x", "o.1.1"))
    for row in (full, replace(bare, least_time=None, greatest_time=None), full, bare):
        store.commit(owner, manifest_write((cut(5, lasting, lost_to=150), cut(4, lasting)), (row,)))
        store.commit(owner, manifest_write((cut(5, lasting), cut(4, lasting)), (row,)))
        store.touch(owner, None, 1)
    traced = session.execute(
        "SELECT * FROM store_tests.manifest WHERE dataset = %s AND shard = %s",
        (shard.dataset, shard.shard),
        trace=True,
    )
    events = [event.description for event in traced.get_query_trace().events]
    # The static row counts as a row.
    assert [re.findall(r"\d+", event) for event in events if "tombstone cells" in event] == [["4", "0"]]


def test_a_lease_is_applied_even_if_the_job_s_creator_has_a_clock_an_hour_ahead(
    connection: CassandraConnection, other_store: CassandraStore, shard: ShardId, lasting: Lifetime
) -> None:
    session = connect(connection)
    session.cluster.timestamp_generator = lambda: (SystemClock().now_ms() + 3_600_000) * 1_000
    with closing(store_over(session, connection, SystemClock())) as store:
        pending = job(shard, 5, lasting)
        assert store.add_job(pending)
        lease = replace(pending, state=JobState.LEASED, epoch=1, worker="a", leased_until=120_000)
        assert other_store.replace_job(pending, lease)
        assert store.jobs(shard) == other_store.jobs(shard) == [lease]
        assert other_store.remove_job(lease)
        assert store.jobs(shard) == []


def test_no_write_has_an_explicit_timestamp(connection: CassandraConnection, shard: ShardId, lasting: Lifetime) -> None:
    session = connect(connection)
    session.cluster.timestamp_generator = lambda: (SystemClock().now_ms() + 3_600_000) * 1_000
    where = SegmentsOf(shard, 5, 0, "attempt-1")
    with closing(store_over(session, connection, SystemClock())) as store:
        store.write_segments(where, [Segment(series_key(1), 0, b"x")], lasting)
        written = session.execute(
            "SELECT WRITETIME(data) FROM store_tests.segments"
            ' WHERE dataset = %s AND shard = %s AND bucket = 5 AND "group" = 0 AND attempt = %s',
            (shard.dataset, shard.shard, "attempt-1"),
        ).one()[0]
    assert abs(written / 1_000 - SystemClock().now_ms()) < 600_000


def test_a_lifetime_beyond_cassandra_s_maximum_is_refused_with_a_remedy(store: CassandraStore, shard: ShardId) -> None:
    far = Lifetime.from_present(PRESENT, 21 * YEAR)
    with pytest.raises(StoreRefused, match="shorter"):
        store.write_segments(SegmentsOf(shard, 5, 0, "a"), [Segment(b"x", 0, b"x")], far)


def test_a_value_that_a_column_can_not_hold_is_refused(
    store: CassandraStore, shard: ShardId, lasting: Lifetime
) -> None:
    owner = taken(store, shard)
    for write in (manifest_write(next_part_id=2**63), manifest_write((cut(2**63, lasting),))):
        with pytest.raises(StoreRefused, match="can't be stored in Cassandra"):
            store.commit(owner, write)
    with pytest.raises(StoreRefused, match="can't be stored in Cassandra"):
        store.write_segments(SegmentsOf(shard, 5, 0, "a"), [Segment(b"x", 2**31, b"x")], lasting)
    with pytest.raises(StoreRefused, match="can't be stored in Cassandra"):
        store.state(ShardId("half a pair: \ud800", 0))


def test_the_size_of_a_row_in_a_batch_does_not_exceed_its_estimate(
    store: CassandraStore, shard: ShardId, lasting: Lifetime
) -> None:
    """Batches are limited by an estimate, which must exceed the sent bytes plus 16 bytes per value for what servers
    add.
    """
    index = IndexBucketRows(2**31 - 1, bytes(16), "o" * 60)
    named = replace(group_row(5, 0, lasting, attempt="a" * 60), written_by="h" * 255, index=index)
    hours = replace(named, late=tuple(LateSamples(hour, 2**62) for hour in range(MAX_COUNTS)))
    ranges = replace(named, late=tuple(LateSamples(2 * hour, 2**62, hours=2) for hour in range(MAX_COUNTS)))
    marked = replace(cut(5, lasting, lost_to=150), last=RecordIdentity(1, 2, 3, 4))
    key = (shard.dataset, shard.shard)
    for row in (named, hours, ranges, marked):
        if isinstance(row, CutRow):
            statement, values = WRITE_CUT, cut_values(key, 1, row, PRESENT)
        else:
            statement, values = WRITE_GROUP, group_values(key, 1, row, PRESENT)
        sent = store._requests.bind(statement, values).values
        assert sum(len(value) + 4 + 16 for value in sent) <= row_bytes(row)


def test_an_index_bucket_is_read_in_small_pages(
    store: CassandraStore, session: LossySession, shard: ShardId, lasting: Lifetime
) -> None:
    where = IndexBucketOf(shard, 5, "attempt-1")
    store.write_index_bucket(where, (bytes([number]) * 1_000_000 for number in range(10)), lasting)
    rows = store.index_bucket(where)
    next(rows)
    # The current page, and the next one.
    assert session.count("SELECT seq") == 2
    assert len(list(rows)) == 9
    assert session.count("SELECT seq") == 3


def test_a_closed_store_raises_an_error(other_store: CassandraStore, shard: ShardId, lasting: Lifetime) -> None:
    other_store.close()
    for call in (
        lambda: other_store.state(shard),
        lambda: other_store.take(shard, "owner-a", None, now=1, topic_id="t"),
        lambda: other_store.write_index_bucket(IndexBucketOf(shard, 5, "a"), [b"x"], lasting),
        lambda: list(other_store.index_bucket(IndexBucketOf(shard, 5, "a"))),
    ):
        with pytest.raises(StoreRefused, match="is closed"):
            call()
