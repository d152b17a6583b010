"""All calls are thread-safe, and readers block nothing."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle

import pytest

from strandline.store.jobs import JobResultOf, ResultRow
from strandline.store.protocol import Fenced, Store
from strandline.store.rows import IndexBucketOf, Lifetime, Ownership, Segment, SegmentsOf, ShardId
from support.store_contract import cut, fresh_shard, group_row, manifest_write, race, series_key, state_of, taken

pytestmark = pytest.mark.contract


@pytest.fixture
def where(store: Store, shard: ShardId, lasting: Lifetime) -> SegmentsOf:
    """300 segments, more than one page."""
    where = SegmentsOf(shard, 4, 0, "attempt-1")
    store.write_segments(where, numbered(300), lasting)
    return where


def numbered(count: int) -> list[Segment]:
    return [Segment(series_key(number), 0, number.to_bytes(2, "big") * 10_000) for number in range(count)]


def test_a_reader_may_write_between_rows(store: Store, where: SegmentsOf, owner: Ownership, lasting: Lifetime) -> None:
    copy = replace(where, attempt="attempt-2")
    for position, segment in enumerate(store.segments(where)):
        store.write_segments(copy, [segment], lasting)
        if position % 50 == 0:
            store.commit(owner, manifest_write(cuts=(cut(position, lasting),)))
    assert list(store.segments(copy)) == numbered(300)


def test_readers_of_the_same_rows_do_not_disturb_each_other(store: Store, where: SegmentsOf) -> None:
    pairs = zip(store.segments(where), store.segments(where), strict=True)
    assert [left for left, right in pairs if left == right] == numbered(300)
    for rows in race(lambda attempt: list(store.segments(attempt)), [where] * 4):
        assert rows == numbered(300)


def test_a_reader_that_stops_half_way_blocks_no_writer(
    store: Store, other_store: Store, where: SegmentsOf, owner: Ownership, lasting: Lifetime
) -> None:
    half: Iterator[Segment] = store.segments(where)
    assert [next(half) for _ in range(10)] == numbered(10)
    other_store.write_segments(replace(where, attempt="attempt-2"), numbered(5), lasting)
    other_store.commit(owner, manifest_write(cuts=(cut(1, lasting),)))
    store.commit(owner, manifest_write(cuts=(cut(2, lasting),)))
    assert list(half) == numbered(300)[10:]


def test_rows_may_be_read_in_another_thread_than_the_one_that_made_the_call(store: Store, where: SegmentsOf) -> None:
    rows = store.segments(where)
    first_rows = [next(rows)]
    with ThreadPoolExecutor(1) as thread:
        first_rows += thread.submit(lambda: [next(rows) for _ in range(150)]).result()
    assert first_rows + list(rows) == numbered(300)


def test_all_writes_of_concurrent_threads_are_stored(store: Store, other_store: Store, lasting: Lifetime) -> None:
    shard = fresh_shard()

    def write(here: Store, number: int) -> None:
        for _ in range(3):
            here.write_segments(SegmentsOf(shard, number, 0, "attempt-1"), numbered(20), lasting)
            here.write_index_bucket(IndexBucketOf(shard, number, "attempt-1"), [bytes([number])] * 20, lasting)
            rows = [ResultRow("summary", seq, bytes([number])) for seq in range(20)]
            here.write_result(JobResultOf(shard, number, "plan-1/1"), rows, lasting)

    race(write, cycle([store, other_store]), range(6))
    for number in range(6):
        assert list(store.segments(SegmentsOf(shard, number, 0, "attempt-1"))) == numbered(20)
        assert list(store.index_bucket(IndexBucketOf(shard, number, "attempt-1"))) == [bytes([number])] * 20
        result = store.result(JobResultOf(shard, number, "plan-1/1"), "summary")
        assert [row.data for row in result] == [bytes([number])] * 20


def test_a_commit_is_visible_completely_or_not_at_all(
    store: Store, other_store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    def commit(number: int) -> None:
        groups = tuple(group_row(5, group, lasting, attempt=f"attempt-{number}") for group in range(16))
        store.commit(owner, manifest_write(cuts=(cut(5, lasting, end=number),), groups=groups, next_part_id=number))

    commit(0)
    done = threading.Event()
    seen = []

    def read_all() -> None:
        while not done.is_set():
            rows = other_store.manifest(shard)
            assert rows is not None
            values = {row.attempt for row in rows.groups} | {f"attempt-{row.end}" for row in rows.cuts}
            seen.append(values | {f"attempt-{rows.state.next_part_id}"})

    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(read_all)
        try:
            for number in range(1, 31):
                commit(number)
        finally:
            done.set()
        reading.result()
    assert seen
    assert [values for values in seen if len(values) != 1] == []


def test_only_one_of_owner_and_successor_writes_at_any_moment(
    store: Store, other_store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    committed = threading.Semaphore(0)

    def write_until_fenced() -> int:
        for bucket in range(100_000):
            try:
                store.commit(owner, manifest_write(cuts=(cut(bucket, lasting),), next_part_id=bucket + 1))
            except Fenced:
                return bucket
            committed.release()
        raise AssertionError("it was never fenced")

    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(write_until_fenced)
        for _ in range(5):
            assert committed.acquire(timeout=60)
        taken(other_store, shard)
        at_takeover = other_store.manifest(shard)
        buckets = writing.result()
    assert at_takeover is not None
    assert [row.bucket for row in at_takeover.cuts] == list(range(buckets - 1, -1, -1))
    assert other_store.manifest(shard) == at_takeover
    assert state_of(store, shard).next_part_id == buckets


def test_closing_twice_does_nothing_and_leaves_the_data(
    store: Store, other_store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    other_store.commit(owner, manifest_write(cuts=(cut(1, lasting),)))
    other_store.close()
    other_store.close()
    rows = store.manifest(shard)
    assert rows is not None
    assert rows.cuts == (cut(1, lasting),)
