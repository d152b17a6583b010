"""A job's results: rows of several kinds, each in order, by attempt."""

import pytest

from strandline.store.jobs import JobResultOf, ResultRow
from strandline.store.protocol import Store
from strandline.store.rows import Lifetime, ShardId
from support.store_contract import fresh_shard

pytestmark = pytest.mark.contract


@pytest.fixture
def where(shard: ShardId) -> JobResultOf:
    return JobResultOf(shard, bucket=472_222, attempt="plan-1/1")


def rows_of(kind: str, count: int) -> list[ResultRow]:
    return [ResultRow(kind, seq, f"{kind} {seq}".encode()) for seq in range(count)]


def test_a_job_that_wrote_nothing_has_no_results(store: Store, where: JobResultOf, lasting: Lifetime) -> None:
    store.write_result(where, [], lasting)
    assert list(store.result(where, "summary")) == []


def test_each_kind_is_read_separately_and_in_order(
    store: Store, other_store: Store, where: JobResultOf, lasting: Lifetime
) -> None:
    summaries, keys = rows_of("summary", 350), rows_of("keys", 20)
    store.write_result(where, [*summaries[::-2], *keys[::-1]], lasting)
    store.write_result(where, summaries[::2][::-1] + summaries[1::2], lasting)
    assert list(store.result(where, "summary")) == summaries
    assert list(store.result(where, "keys")) == keys
    assert list(other_store.result(where, "keys")) == keys
    assert list(store.result(where, "key")) == []


def test_one_row_is_found_by_its_number(store: Store, where: JobResultOf, lasting: Lifetime) -> None:
    rows = [ResultRow("keys", seq, f"{seq}".encode()) for seq in (0, 3, 4, 2**31 - 1)]
    store.write_result(where, rows, lasting)
    for row in rows:
        assert list(store.result(where, "keys", seq=row.seq)) == [row]
    assert list(store.result(where, "keys", seq=2)) == []
    assert list(store.result(where, "summary", seq=0)) == []


def test_rows_keep_the_numbers_that_they_were_given(store: Store, where: JobResultOf, lasting: Lifetime) -> None:
    rows = [ResultRow("summary", seq, b"") for seq in (0, 7, 9, 10, 2**31 - 1)]
    store.write_result(where, rows, lasting)
    assert list(store.result(where, "summary")) == rows


def test_large_rows_are_read_byte_for_byte(store: Store, where: JobResultOf, lasting: Lifetime) -> None:
    rows = [ResultRow("keys", seq, bytes([seq]) + b"\xff\x00" * 499_999) for seq in range(12)]
    store.write_result(where, rows, lasting)
    for found, row in zip(store.result(where, "keys"), rows, strict=True):
        assert found == row, f"row {row.seq} differs"


def test_writing_the_same_rows_again_changes_nothing(store: Store, where: JobResultOf, lasting: Lifetime) -> None:
    rows = rows_of("summary", 5)
    store.write_result(where, rows, lasting)
    store.write_result(where, rows[2:], lasting)
    assert list(store.result(where, "summary")) == rows


def test_results_are_seen_only_where_they_were_written(store: Store, lasting: Lifetime) -> None:
    shard = fresh_shard()
    results = [
        JobResultOf(shard, 4, "plan-1/1"),
        JobResultOf(shard, 4, "plan-1/10"),
        JobResultOf(shard, 5, "plan-1/1"),
        JobResultOf(ShardId(shard.dataset, shard.shard + 1), 4, "plan-1/1"),
        JobResultOf(ShardId(f"{shard.dataset}-2", shard.shard), 4, "plan-1/1"),
    ]
    for number, result in enumerate(results):
        store.write_result(result, [ResultRow("summary", 0, bytes([number]))], lasting)
    for number, result in enumerate(results):
        assert list(store.result(result, "summary")) == [ResultRow("summary", 0, bytes([number]))]
