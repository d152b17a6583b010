"""Many rows at once: all are written, regardless of lost answers and refusals in between."""

from contextlib import closing

import pytest
from cassandra import InvalidRequest, OperationTimedOut, WriteTimeout, WriteType

from strandline.clock import ManualClock
from strandline.store.cassandra.store import CassandraStore
from strandline.store.connection import CassandraConnection
from strandline.store.protocol import StoreRefused
from strandline.store.rows import IndexBucketOf, Lifetime, Segment, SegmentsOf, ShardId
from support.cassandra_store import LossySession, Lost, open_lossy
from support.store_contract import LASTING, PRESENT, cut, group_row, manifest_write, series_key, taken

pytestmark = pytest.mark.system

INSERT = 'INSERT INTO "store_tests".segments'


@pytest.fixture
def where(shard: ShardId) -> SegmentsOf:
    return SegmentsOf(shard, 5, 0, "attempt-1")


@pytest.fixture
def segments() -> list[Segment]:
    return [Segment(series_key(number), 0, bytes([number % 256]) * 65_536) for number in range(200)]


def test_all_rows_are_written_despite_lost_answers(
    store: CassandraStore, session: LossySession, where: SegmentsOf, segments: list[Segment], lasting: Lifetime
) -> None:
    late = WriteTimeout("too late", write_type=WriteType.SIMPLE)
    session.lose(INSERT, Lost(applied=False), Lost(applied=True), Lost(applied=False, error=late), Lost(applied=False))
    store.write_segments(where, segments, lasting)
    assert list(store.segments(where)) == segments
    assert session.count(INSERT) == 204


def test_a_row_that_the_servers_refuse_ends_the_write_immediately(
    store: CassandraStore, session: LossySession, where: SegmentsOf, segments: list[Segment], lasting: Lifetime
) -> None:
    session.lose(INSERT, Lost(applied=False), Lost(applied=False, error=InvalidRequest("too large")))
    with pytest.raises(
        StoreRefused, match=r"rejected a request to write segments of shard .*, bucket 5, group 0.*too large"
    ):
        store.write_segments(where, segments, lasting)
    assert session.count(INSERT) < 200


def test_reads_whose_answers_were_lost_are_repeated(
    store: CassandraStore, session: LossySession, where: SegmentsOf, segments: list[Segment], lasting: Lifetime
) -> None:
    store.write_segments(where, segments, lasting)
    session.lose("SELECT first", *[Lost(applied=False, error=OperationTimedOut())] * 3)
    assert list(store.segments(where)) == segments
    session.lose("SELECT first", *[Lost(applied=True)] * 2)
    assert list(store.segments(where, first=series_key(10), last=series_key(20))) == segments[9:21]


def test_rows_of_a_megabyte_are_never_refused_because_of_a_full_socket(session: LossySession, shard: ShardId) -> None:
    """Otherwise, the driver's connections refuse requests, and lose one of their request numbers each time."""
    insert = session.prepare(
        "INSERT INTO store_tests.index_buckets (dataset, shard, bucket, attempt, seq, data) VALUES (?, 0, 0, 'a', ?, ?)"
        " USING TTL 600"
    )
    row = bytes(1_000_000)
    for future in [session.execute_async(insert.bind((shard.dataset, number, row))) for number in range(40)]:
        future.result()
    assert [pool["in_flights"] for pool in session.get_pool_state().values()] == [[0]]


def test_rows_have_the_same_lifetime_regardless_of_the_client_s_clock(
    connection: CassandraConnection, shard: ShardId
) -> None:
    """A single wrong clock reading skips nothing, and a lifetime is a duration that does not depend on a client's
    clock.
    """
    life = Lifetime.from_present(PRESENT, LASTING)
    store, session = open_lossy(connection, clock=ManualClock(PRESENT + 100 * LASTING))
    with closing(store):
        assert store.write_index_bucket(IndexBucketOf(shard, 5, "attempt-1"), [b"x", b"y"], life) == 2
        assert list(store.index_bucket(IndexBucketOf(shard, 5, "attempt-1"))) == [b"x", b"y"]
        store.commit(taken(store, shard), manifest_write([cut(5, life)], [group_row(5, 0, life)]))
        place = (shard.dataset, shard.shard)
        rows = session.execute(
            "SELECT TTL(expires) FROM store_tests.manifest WHERE dataset = %s AND shard = %s", place
        ).all()
        blobs = session.execute(
            "SELECT TTL(expires) FROM store_tests.index_buckets"
            " WHERE dataset = %s AND shard = %s AND bucket = 5 AND attempt = 'attempt-1'",
            place,
        ).all()
    assert len(rows) == len(blobs) == 2
    # Up to 1 % longer, for group rows 2 %; and some seconds may have passed since.
    assert all(LASTING / 1_000 - 120 < row[0] < 1.03 * LASTING / 1_000 for row in (*rows, *blobs))
