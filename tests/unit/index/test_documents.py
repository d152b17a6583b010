"""The layouts of part keys and batches, compared with bytes that are assembled by hand."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import (
    MalformedBatch,
    PartKeyBatch,
    TermCounts,
    decode_part_key,
    encode_part_key,
    encode_values,
)

pytestmark = pytest.mark.unit

text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
keys = st.lists(st.binary(max_size=30), max_size=8)


def packed_by_hand(ids: list[int], hashes: list[tuple[int, int]], part_keys: list[bytes]) -> bytes:
    ends = [sum(map(len, part_keys[:i])) for i in range(len(part_keys) + 1)]
    return b"".join(
        [
            struct.pack("<I", len(ids)),
            struct.pack(f"<{len(ids)}I", *ids),
            *(struct.pack("<QQ", *words) for words in hashes),
            struct.pack(f"<{len(ends)}I", *ends),
            *part_keys,
        ]
    )


def test_a_part_key_is_its_labels_by_name_each_text_after_its_length() -> None:
    assert encode_part_key({"job": "é", "__name__": "up"}) == b"\x08\x00__name__\x02\x00up\x03\x00job\x02\x00\xc3\xa9"


def test_a_label_with_an_empty_value_is_omitted() -> None:
    assert encode_part_key({"a": "", "b": "1"}) == encode_part_key({"b": "1"})


@given(st.dictionaries(text, text, max_size=6))
def test_a_part_key_decodes_to_the_labels_that_were_encoded(labels: dict[str, str]) -> None:
    decoded = decode_part_key(encode_part_key(labels))
    assert decoded == labels
    assert [name.encode() for name in decoded] == sorted(name.encode() for name in labels)


def test_a_part_key_truncated_anywhere_is_refused_or_ends_with_a_complete_label() -> None:
    whole = encode_part_key({"a": "1", "bb": "22"})
    first = encode_part_key({"a": "1"})
    for cut in range(len(whole)):
        if whole[:cut] in (b"", first):
            assert encode_part_key(decode_part_key(whole[:cut])) == whole[:cut]
        else:
            with pytest.raises(MalformedBatch, match="cut off"):
                decode_part_key(whole[:cut])


def test_a_text_too_long_for_its_length_field_is_refused() -> None:
    assert len(encode_part_key({"a": "x" * 0xFFFF})) == 2 + 1 + 2 + 0xFFFF
    with pytest.raises(MalformedBatch, match="65536 bytes"):
        encode_part_key({"a": "x" * 0x10000})


def test_a_list_of_values_is_each_value_after_its_length() -> None:
    assert encode_values(["a", "é"]) == b"\x01\x00a\x02\x00\xc3\xa9"


@given(keys)
def test_a_batch_packs_to_its_layout_and_unpacks_again(part_keys: list[bytes]) -> None:
    ids = [4_294_967_295 - i for i in range(len(part_keys))]
    hashes = [(i, 2**64 - 1 - i) for i in range(len(part_keys))]
    packed = PartKeyBatch.of(ids, hashes, part_keys).pack()
    assert packed == packed_by_hand(ids, hashes, part_keys)
    again = PartKeyBatch.unpack(packed)
    assert again.part_ids.tolist() == ids
    assert again.key_hashes.tolist() == [list(words) for words in hashes]
    assert [again.part_key(i) for i in range(len(again))] == part_keys


def test_a_slice_of_a_batch_packs_as_a_batch_of_its_own() -> None:
    part_keys = [b"one", b"three", b"", b"seven"]
    whole = PartKeyBatch.of(range(4), [(i, i) for i in range(4)], part_keys)
    piece = PartKeyBatch(whole.part_ids[1:3], whole.key_hashes[1:3], whole.offsets[1:4], whole.keys)
    assert piece.pack() == packed_by_hand([1, 2], [(1, 1), (2, 2)], part_keys[1:3])


def test_columns_with_gaps_between_their_values_are_packed_without_them() -> None:
    wide = np.arange(8, dtype=np.uint32)
    hashes = np.arange(16, dtype=np.uint64).reshape(4, 4)
    strided = PartKeyBatch(wide[::2], hashes[:, ::2], np.zeros(5, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    assert strided.pack() == packed_by_hand([0, 2, 4, 6], [(0, 2), (4, 6), (8, 10), (12, 14)], [b""] * 4)


@pytest.mark.parametrize(
    ("offsets", "document", "reason"),
    [
        ([0, 4, 3, 6], 1, "end is before its start"),
        ([0, 2**32 + 1, 4, 6], 1, "end is before its start"),
        ([0, 2, 4, 7], -1, "are outside of 6 bytes"),
        ([-1, 2, 4, 6], -1, "are outside of 6 bytes"),
        ([0, 2, 6], -1, "3 offsets"),
    ],
)
def test_offsets_that_do_not_delimit_part_keys_are_refused(offsets: list[int], document: int, reason: str) -> None:
    batch = PartKeyBatch(
        np.arange(3, dtype=np.uint32),
        np.zeros((3, 2), dtype=np.uint64),
        np.array(offsets, dtype=np.int64),
        np.zeros(6, dtype=np.uint8),
    )
    with pytest.raises(MalformedBatch, match=reason) as refused:
        batch.pack()
    assert refused.value.document == document


def test_a_wrong_number_of_hashes_is_refused() -> None:
    batch = PartKeyBatch.of([1, 2], [(1, 1)], [b"", b""])
    with pytest.raises(MalformedBatch, match=r"2 part ids have hashes of shape \(1, 2\)"):
        batch.pack()


def test_a_page_of_terms_is_read_with_its_counts() -> None:
    packed = struct.pack("<II", 2, 1) + struct.pack("<II", 7, 9) + struct.pack("<III", 0, 1, 5) + "a€x".encode()
    page = TermCounts.unpack(packed)
    assert (page.terms, page.counts.tolist(), page.more) == (["a", "€x"], [7, 9], True)
