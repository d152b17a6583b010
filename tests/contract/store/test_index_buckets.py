"""The rows of an index bucket are read in the order in which they were written, by attempt."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.store.protocol import Store
from strandline.store.rows import IndexBucketOf, Lifetime, ShardId
from support.store_contract import Lives, fresh_shard

pytestmark = pytest.mark.contract


@pytest.fixture
def where(shard: ShardId) -> IndexBucketOf:
    return IndexBucketOf(shard, bucket=472_222, attempt="attempt-1")


def test_an_index_bucket_that_was_not_written_has_no_rows(store: Store, where: IndexBucketOf) -> None:
    assert list(store.index_bucket(where)) == []


def test_writing_no_rows_writes_none(store: Store, where: IndexBucketOf, lasting: Lifetime) -> None:
    assert store.write_index_bucket(where, [], lasting) == 0
    assert list(store.index_bucket(where)) == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.binary(max_size=50), max_size=15))
def test_any_rows_are_read_in_order(store: Store, lives: Lives, rows: list[bytes]) -> None:
    where = IndexBucketOf(fresh_shard(), 1, "attempt-1")
    assert store.write_index_bucket(where, rows, lives.lasting()) == len(rows)
    assert list(store.index_bucket(where)) == rows


def test_hundreds_of_rows_are_read_in_order(
    store: Store, other_store: Store, where: IndexBucketOf, lasting: Lifetime
) -> None:
    # Some are equal, and no sorting by content would give this order.
    rows = [str(number * 7_919 % 50).encode() for number in range(350)]
    assert store.write_index_bucket(where, rows, lasting) == 350
    assert list(store.index_bucket(where)) == rows
    assert list(other_store.index_bucket(where)) == rows


def test_rows_of_a_megabyte_are_read_byte_for_byte(store: Store, where: IndexBucketOf, lasting: Lifetime) -> None:
    rows = [bytes([number]) + b"\xff\x00" * 499_999 + bytes([255 - number]) for number in range(25)]
    assert {len(row) for row in rows} == {1_000_000}
    assert store.write_index_bucket(where, rows, lasting) == 25
    # Compared one by one, because the content is too long to print.
    for given_row, row in zip(store.index_bucket(where), rows, strict=True):
        assert given_row == row, f"row {row[0]} differs"


def test_rows_are_written_as_they_are_encoded(store: Store, where: IndexBucketOf, lasting: Lifetime) -> None:
    def encode() -> Iterator[bytes]:
        for number in range(30):
            # The caller may use the store while it encodes rows.
            assert list(store.index_bucket(IndexBucketOf(where.shard, 1, "attempt-1"))) == []
            store.write_index_bucket(IndexBucketOf(where.shard, 2, "attempt-1"), [b"aside"], lasting)
            yield bytes([number])

    assert store.write_index_bucket(where, encode(), lasting) == 30
    assert list(store.index_bucket(where)) == [bytes([number]) for number in range(30)]


def test_an_error_while_rows_are_encoded_is_raised_to_the_caller(
    store: Store, where: IndexBucketOf, lasting: Lifetime
) -> None:
    def encode() -> Iterator[bytes]:
        yield b"one"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write_index_bucket(where, encode(), lasting)
    again = IndexBucketOf(where.shard, where.bucket, "attempt-2")
    assert store.write_index_bucket(again, [b"one", b"two"], lasting) == 2
    assert list(store.index_bucket(again)) == [b"one", b"two"]


def test_writing_the_same_rows_again_changes_nothing(store: Store, where: IndexBucketOf, lasting: Lifetime) -> None:
    rows = [b"one", b"two", b"three"]
    for _ in range(2):
        assert store.write_index_bucket(where, rows, lasting) == 3
        assert list(store.index_bucket(where)) == rows


def test_rows_are_seen_only_where_they_were_written(store: Store, lasting: Lifetime) -> None:
    shard = fresh_shard()
    index_buckets = [
        IndexBucketOf(shard, 4, "attempt-1"),
        IndexBucketOf(shard, 4, "attempt-10"),
        IndexBucketOf(shard, 5, "attempt-1"),
        IndexBucketOf(ShardId(shard.dataset, shard.shard + 1), 4, "attempt-1"),
        IndexBucketOf(ShardId(f"{shard.dataset}-2", shard.shard), 4, "attempt-1"),
    ]
    for number, index_bucket in enumerate(index_buckets):
        store.write_index_bucket(index_bucket, [bytes([number])] * (number + 1), lasting)
    for number, index_bucket in enumerate(index_buckets):
        assert list(store.index_bucket(index_bucket)) == [bytes([number])] * (number + 1)
