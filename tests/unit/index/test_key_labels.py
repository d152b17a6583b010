"""Labels counted in Python: the same as Lucene's counts."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import KeyList, MalformedBatch, PartKeyBatch, TermCounts, encode_part_key
from strandline.index.key_labels import names_in, values_in
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import everything
from strandline.index.vm import start_vm

pytestmark = pytest.mark.unit

TEXTS = st.sampled_from(["a", "b", "B", "ab", "é", "\U0001f600", "\uffff", "job"])
KEYS = st.lists(st.dictionaries(TEXTS, TEXTS, min_size=1), max_size=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    start_vm()
    return tmp_path_factory.mktemp("labels")


def few_of(part_keys: list[bytes]) -> KeyList:
    offsets = np.cumsum([0, *map(len, part_keys)], dtype=np.int64)
    ids = np.arange(len(part_keys), dtype=np.uint32)
    return KeyList(ids, offsets, np.frombuffer(b"".join(part_keys), dtype=np.uint8))


def contents(counts: TermCounts) -> tuple[list[str], list[int], bool]:
    return counts.terms, counts.counts.tolist(), counts.more


@given(labels=KEYS, label=TEXTS, limit=st.integers(0, 5), number=st.integers(0, 2**62))
def test_names_and_values_are_those_of_lucene(
    folder: Path, labels: list[dict[str, str]], label: str, limit: int, number: int
) -> None:
    keys = [encode_part_key(label_set) for label_set in labels]
    batch = PartKeyBatch.of(range(len(keys)), [(i, i) for i in range(len(keys))], keys)
    few = few_of(keys)
    with PartKeyIndex.open(folder / str(number)) as index:
        index.delete(index.search(everything()))
        index.add(batch)
        index.refresh()
        assert contents(names_in(few, limit=limit)) == contents(index.label_names(everything(), limit=limit))
        assert contents(values_in(few, label, limit=limit)) == contents(
            index.label_values(label, everything(), limit=limit)
        )


@pytest.mark.parametrize("beside", [[], [encode_part_key({"a": "b"})]], ids=["alone", "beside another"])
def test_a_truncated_key_is_refused(beside: list[bytes]) -> None:
    whole = encode_part_key({"a": "bc", "é": "\U0001f600"})
    after_first = len(encode_part_key({"a": "bc"}))
    for cut in set(range(1, len(whole))) - {after_first}:
        few = few_of([whole[:cut], *beside])
        with pytest.raises(MalformedBatch, match="cut off"):
            names_in(few, limit=9)
        with pytest.raises(MalformedBatch, match="cut off"):
            values_in(few, "none", limit=9)


@given(part_key=st.binary(max_size=12), name=st.sampled_from(["", "a", "\0"]))
def test_no_bytes_cause_a_read_past_their_end(part_key: bytes, name: str) -> None:
    # Words of the next key must not be read as part of this one.
    few = few_of([part_key + b"\1\0a\1\0b"])
    few = KeyList(few.part_ids, np.array([0, len(part_key)]), few.keys[: len(part_key)])
    with suppress(MalformedBatch):
        assert len(names_in(few, limit=99).data) <= len(part_key)
    with suppress(MalformedBatch):
        assert values_in(few, name, limit=99).data.tobytes() in part_key
