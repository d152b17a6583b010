"""Keys that are summarised without an index, and added to it later."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.bucket_keys import BucketKeys
from strandline.index.documents import decode_part_key
from strandline.index.key_documents import DictDocuments
from strandline.index.key_summary import PartKeyBytes
from strandline.index.policy import BucketPolicy
from strandline.index.shard_index import ShardIndex
from strandline.wire.columns import Columns
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

pytestmark = pytest.mark.unit

HOUR = 3_600_000
POLICY = BucketPolicy(flush_interval=HOUR, retention=5 * HOUR, margin=6 * HOUR, stale_after=HOUR)

# A record is a list of (series, sample times); a bucket is some batches of records.
Record = Sequence[tuple[str, Sequence[int]]]


def decoded(records: Sequence[Record]) -> Columns:
    return decode_batch(
        [
            compress(
                encode_request(Series([("name", name)], [(time, 1.0) for time in times]) for name, times in record)
            )
            for record in records
        ],
        Limits(),
    )


def collected(*batches: tuple[int, Sequence[Record]]) -> BucketKeys:
    """Batches, each with the offset of its first record."""
    keys = BucketKeys()
    for first, records in batches:
        keys.take(decoded(records), np.arange(first, first + len(records), dtype=np.int64))
    return keys


def names(found: PartKeyBytes) -> list[str]:
    keys = [found.keys[found.offsets[at] : found.offsets[at + 1]].tobytes() for at in range(len(found))]
    return [decode_part_key(key)["name"] for key in keys]


def test_a_key_has_its_lowest_and_highest_time_of_all_batches() -> None:
    summary = collected((10, [[("a", [50, 40]), ("b", [7])]]), (11, [[("a", [60])], [("b", [1, 9])]])).summary()
    assert summary.least.tolist() == [40, 1]
    assert summary.greatest.tolist() == [60, 9]


def test_a_key_has_the_offset_of_its_first_record() -> None:
    summary = collected((10, [[("a", [1])], [("b", [1]), ("a", [1]), ("c", [1])]]), (12, [[("c", [1])]])).summary()
    assert summary.offset.tolist() == [10, 11, 11]
    assert summary.position.tolist() == [0, 0, 2]


def test_a_series_without_samples_is_not_a_key() -> None:
    keys = collected((10, [[("a", []), ("b", [1])]]))
    assert len(keys) == 1
    assert names(keys.part_keys()) == ["b"]
    assert keys.summary().position.tolist() == [1]


def test_key_bytes_belong_to_their_numbers_also_in_a_selection() -> None:
    keys = collected((1, [[("a", [1]), ("b", [1])]]), (2, [[("c", [1]), ("a", [1]), ("d", [1])]]))
    assert names(keys.part_keys()) == ["a", "b", "c", "d"]
    assert names(keys.part_keys().take(np.array([3, 0, 3]))) == ["d", "a", "d"]


TIMES = st.lists(st.integers(0, 20 * HOUR), max_size=2)
RECORDS = st.lists(st.lists(st.tuples(st.sampled_from("abcdefgh"), TIMES), max_size=5), min_size=1, max_size=3)
BUCKETS = st.lists(st.lists(RECORDS, max_size=3), min_size=1, max_size=4)


def state_of(index: ShardIndex) -> tuple[list[list[int]], int, list[list[int]]]:
    rows = index.columns.rows
    columns = (rows.part_id, rows.start, rows.last, rows.end, rows.newest, rows.active_in, rows.key_low, rows.metric)
    return (
        [column.tolist() for column in columns],
        index.next_part_id,
        [list(index.open.changed), list(index.open.active)],
    )


@given(BUCKETS, st.integers(1, 9))
def test_an_index_built_from_summaries_equals_one_built_from_the_records(
    buckets: list[list[list[Record]]], series_limit: int
) -> None:
    by_records, by_summaries = (
        ShardIndex(POLICY, DictDocuments(), open_bucket=0, next_part_id=5, series_limit=series_limit) for _ in range(2)
    )
    for batches in buckets:
        keys, offset, new_keys = BucketKeys(), 0, 0
        for records in batches:
            batch = decoded(records)
            keys.take(batch, np.arange(offset, offset + len(records), dtype=np.int64))
            new_keys += by_records.take(batch).new_keys
            offset += len(records)
        # In any order: the offset of a key decides, not its position.
        shuffled = np.random.default_rng(len(keys)).permutation(len(keys))
        taken = by_summaries.take_summary(keys.summary().take(shuffled), keys.part_keys().take(shuffled).take)
        assert taken.new_keys == new_keys
        assert state_of(by_summaries) == state_of(by_records)
        one, other = by_records.cut(), by_summaries.cut()
        assert one.part_ids.tolist() == other.part_ids.tolist()
        assert one.last.tolist() == other.last.tolist()
        assert by_records.encode(one) == by_summaries.encode(other)
        for index, frozen in ((by_records, one), (by_summaries, other)):
            index.stored(frozen, expires=100 * HOUR)


def test_key_bytes_are_requested_only_of_new_keys() -> None:
    index = ShardIndex(POLICY, DictDocuments(), open_bucket=0, next_part_id=0, series_limit=10)
    index.take(decoded([[("b", [1])]]))
    requested: list[list[str]] = []
    keys = collected((10, [[("a", [1]), ("b", [1]), ("c", [1])]]))

    def part_keys(rows: np.ndarray) -> PartKeyBytes:  # type: ignore[type-arg]
        found = keys.part_keys().take(rows)
        requested.append(names(found))
        return found

    index.take_summary(keys.summary(), part_keys)
    assert requested == [["a", "c"]]
