"""Many rows at once: all are there, however the servers answer meanwhile."""

import pytest
from cassandra import InvalidRequest, OperationTimedOut, WriteTimeout, WriteType

from strandline.clock import SystemClock
from strandline.store.cassandra.store import CassandraStore
from strandline.store.protocol import StoreRefused
from strandline.store.rows import IndexBucketOf, Segment, SegmentsOf, ShardId
from support.cassandra_store import LossySession, Lost
from support.store_contract import series_key

pytestmark = pytest.mark.system

INSERT = 'INSERT INTO "store_tests".segments'


@pytest.fixture
def where(shard: ShardId) -> SegmentsOf:
    return SegmentsOf(shard, 5, 0, "attempt-1")


@pytest.fixture
def segments() -> list[Segment]:
    return [Segment(series_key(number), 0, bytes([number % 256]) * 65_536) for number in range(200)]


def test_rows_whose_answers_were_lost_are_all_there(
    store: CassandraStore, session: LossySession, where: SegmentsOf, segments: list[Segment], lasting: int
) -> None:
    late = WriteTimeout("too late", write_type=WriteType.SIMPLE)
    session.lose(INSERT, Lost(applied=False), Lost(applied=True), Lost(applied=False, error=late), Lost(applied=False))
    store.write_segments(where, segments, lasting)
    assert list(store.segments(where)) == segments
    assert session.count(INSERT) == 204


def test_a_row_that_the_servers_refuse_ends_the_write_at_once(
    store: CassandraStore, session: LossySession, where: SegmentsOf, segments: list[Segment], lasting: int
) -> None:
    session.lose(INSERT, Lost(applied=False), Lost(applied=False, error=InvalidRequest("too large")))
    with pytest.raises(StoreRefused, match=r"refuses to write segments of shard .*, bucket 5, group 0.*too large"):
        store.write_segments(where, segments, lasting)
    assert session.count(INSERT) < 200


def test_reads_whose_answers_were_lost_are_asked_for_again(
    store: CassandraStore, session: LossySession, where: SegmentsOf, segments: list[Segment], lasting: int
) -> None:
    store.write_segments(where, segments, lasting)
    session.lose("SELECT first", *[Lost(applied=False, error=OperationTimedOut())] * 3)
    assert list(store.segments(where)) == segments
    session.lose("SELECT first", *[Lost(applied=True)] * 2)
    assert list(store.segments(where, first=series_key(10), last=series_key(20))) == segments[9:21]


def test_rows_of_a_megabyte_are_never_refused_for_a_socket_that_is_full(session: LossySession, shard: ShardId) -> None:
    """The driver's own connections refuse then, and lose one of their request numbers each time."""
    insert = session.prepare(
        "INSERT INTO store_tests.index_buckets (dataset, shard, bucket, attempt, seq, data) VALUES (?, 0, 0, 'a', ?, ?)"
        " USING TTL 600"
    )
    row = bytes(1_000_000)
    for future in [session.execute_async(insert.bind((shard.dataset, number, row))) for number in range(40)]:
        future.result()
    assert [pool["in_flights"] for pool in session.get_pool_state().values()] == [[0]]


def test_what_has_expired_is_not_written_but_counted(
    store: CassandraStore, session: LossySession, shard: ShardId
) -> None:
    expired = SystemClock().now_ms() - 1
    assert store.write_index_bucket(IndexBucketOf(shard, 5, "attempt-1"), [b"x", b"y"], expired) == 2
    store.write_segments(SegmentsOf(shard, 5, 0, "attempt-1"), [Segment(b"x", 0, b"x")], expired)
    assert session.count("INSERT") == 0
