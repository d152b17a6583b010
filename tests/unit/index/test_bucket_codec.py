import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index import bucket_codec
from strandline.index.bucket_codec import (
    BucketDamaged,
    EncodedBucket,
    FetchKeys,
    StoredBucket,
    decode_bucket,
    encode_bucket,
)
from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.index.part_columns import LIVE
from strandline.index.time_bucket import FrozenBucket

pytestmark = pytest.mark.unit

TIMES = st.integers(-(2**62), 2**62)
RECORDS = st.dictionaries(st.integers(0, 2**32 - 2), st.tuples(TIMES, st.one_of(st.just(LIVE), TIMES)), max_size=30)
ACTIVE = st.dictionaries(st.integers(0, 2**32 - 2), TIMES, max_size=30)


def frozen_bucket(records: dict[int, tuple[int, int]], active: dict[int, int]) -> FrozenBucket:
    ids, active_ids = sorted(records), sorted(active)
    return FrozenBucket(
        480_000,
        np.array(ids, dtype=np.uint32),
        np.array([records[part_id][0] for part_id in ids], dtype=np.int64),
        np.array([records[part_id][1] for part_id in ids], dtype=np.int64),
        np.array(active_ids, dtype=np.uint32),
        np.array([active[part_id] for part_id in active_ids], dtype=np.int64),
    )


def keys_of(ids: list[int], length: int = 8) -> PartKeyBatch:
    rng = np.random.default_rng(len(ids))
    texts = [rng.bytes(length // 2).hex() for _ in ids]
    return PartKeyBatch.of(
        ids,
        [(part_id, part_id * 7) for part_id in ids] or np.empty((0, 2)),
        [encode_part_key({"id": str(part_id), "text": text}) for part_id, text in zip(ids, texts, strict=True)],
    )


def fetching(keys: PartKeyBatch) -> FetchKeys:
    """Return keys as an index does: the requested ones, in any order."""

    def fetch(part_ids: np.ndarray) -> PartKeyBatch:
        return keys.take(np.flatnonzero(np.isin(keys.part_ids, part_ids)))

    return fetch


def decode(encoded: EncodedBucket, rows: list[bytes] | None = None) -> StoredBucket:
    return decode_bucket(480_000, encoded.rows if rows is None else rows, len(encoded.rows), encoded.checksum)


@given(RECORDS, ACTIVE, st.randoms())
def test_a_bucket_is_decoded_as_it_was_encoded(records: dict, active: dict, rng) -> None:
    frozen = frozen_bucket(records, active)
    ids = list(records)
    rng.shuffle(ids)
    keys = keys_of(ids)
    expected = {
        part_id: (keys.part_key(position), tuple(keys.key_hashes[position])) for position, part_id in enumerate(ids)
    }
    stored = decode(encode_bucket(frozen, fetching(keys)))
    found = {}
    for part in stored.records:
        for position, part_id in enumerate(part.keys.part_ids.tolist()):
            found[part_id] = (part.keys.part_key(position), tuple(part.keys.key_hashes[position]))
            assert (int(part.start[position]), int(part.end[position])) == records[part_id]
    assert found == expected
    assert dict(zip(stored.active_ids.tolist(), stored.last.tolist(), strict=True)) == active
    assert stored.bucket == 480_000


def test_rows_stay_below_a_megabyte_however_long_or_random_the_keys_are() -> None:
    ids = list(range(300))
    frozen = frozen_bucket({part_id: (part_id, LIVE) for part_id in ids}, dict.fromkeys(range(200_000), 5))
    encoded = encode_bucket(frozen, fetching(keys_of(ids, length=30_000)))
    assert len(encoded.rows) > 4
    assert max(map(len, encoded.rows)) <= bucket_codec.MAX_ROW_BYTES
    stored = decode(encoded)
    assert sum(len(part.keys) for part in stored.records) == 300
    assert len(stored.active_ids) == 200_000


def test_every_flipped_bit_is_detected() -> None:
    encoded = encode_bucket(frozen_bucket({1: (5, LIVE), 9: (3, 4)}, {1: 7}), fetching(keys_of([1, 9])))
    for number, row in enumerate(encoded.rows):
        for position in range(len(row)):
            damaged = bytearray(row)
            damaged[position] ^= 1 << (position % 8)
            rows = [*encoded.rows[:number], bytes(damaged), *encoded.rows[number + 1 :]]
            with pytest.raises(BucketDamaged, match=f"row {number} of index bucket 480000 is damaged"):
                decode(encoded, rows)


def test_truncated_missing_swapped_and_foreign_rows_are_detected() -> None:
    encoded = encode_bucket(frozen_bucket({1: (5, LIVE)}, {1: 7}), fetching(keys_of([1])))
    other = encode_bucket(frozen_bucket({1: (5, LIVE)}, {1: 8}), fetching(keys_of([1])))
    first, second, third = encoded.rows
    for rows, named in (
        ([first, second], "has 2 rows, but 3 were written"),
        ([first, second, third[:-1]], "row 2 of index bucket 480000 is damaged"),
        ([first, second, b""], "row 2 of index bucket 480000 is damaged"),
        ([first, third, second], "not those that its manifest row references"),
        ([first, second, other.rows[2]], "not those that its manifest row references"),
    ):
        with pytest.raises(BucketDamaged, match=named):
            decode(encoded, rows)
    with pytest.raises(BucketDamaged, match="bucket 480000"):
        decode_bucket(480_001, encoded.rows, 3, encoded.checksum)


def test_keys_of_other_records_are_refused() -> None:
    with pytest.raises(ValueError, match="the 0 part keys that were fetched"):
        encode_bucket(frozen_bucket({1: (5, LIVE)}, {}), fetching(keys_of([2])))


def test_a_bucket_of_many_keys_is_fetched_and_written_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_codec, "KEYS_PER_FETCH", 7)
    ids = list(range(100, 130))
    keys = keys_of(ids[::-1])
    batch_sizes: list[int] = []

    def fetch(part_ids: np.ndarray) -> PartKeyBatch:
        batch_sizes.append(len(part_ids))
        return fetching(keys)(part_ids)

    encoded = encode_bucket(frozen_bucket({part_id: (part_id, LIVE) for part_id in ids}, {}), fetch)
    assert batch_sizes == [7, 7, 7, 7, 2]
    found = [part_id for part in decode(encoded).records for part_id in part.keys.part_ids.tolist()]
    assert found == ids
