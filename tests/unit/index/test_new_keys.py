import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import decode_part_key, encode_part_key
from strandline.index.new_keys import key_hashes, new_key_batch
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

pytestmark = pytest.mark.unit

# Lengths on both sides of one and two bytes of a varint, and of two and three.
TEXTS = st.one_of(
    st.text(min_size=1, max_size=8), st.sampled_from(["n" * 127, "n" * 128, "v" * 300, "w" * 16_384, "€", "😀"])
)
LABEL_SETS = st.lists(st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=6), min_size=1, max_size=5)
LIMITS = Limits(label_name=32_766, label_value=32_766)


@given(LABEL_SETS)
def test_a_new_keys_part_key_has_the_series_labels_and_hashes_as_the_record_did(
    label_sets: list[dict[str, str]],
) -> None:
    series = [Series(sorted(labels.items()), [(1, 1.0)]) for labels in label_sets]
    columns = decode_batch([compress(encode_request(series))], LIMITS)
    part_ids = np.arange(100, 100 + len(series), dtype=np.uint32)
    rows = np.arange(len(series))[::-1].copy()
    batch = new_key_batch(columns, rows, part_ids[rows])
    assert batch.part_ids.tolist() == part_ids[rows].tolist()
    for position, row in enumerate(rows):
        assert decode_part_key(batch.part_key(position)) == label_sets[row]
        assert batch.part_key(position) == encode_part_key(label_sets[row])
    low, high = key_hashes(batch.keys, batch.offsets)
    assert low.tolist() == columns.key_low[rows].tolist() == batch.key_hashes[:, 0].tolist()
    assert high.tolist() == columns.key_high[rows].tolist() == batch.key_hashes[:, 1].tolist()


def test_no_rows_give_an_empty_batch() -> None:
    columns = decode_batch([compress(encode_request([Series([("a", "1")], [])]))], LIMITS)
    batch = new_key_batch(columns, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32))
    assert len(batch) == 0
    assert batch.pack() == bytes(8)
