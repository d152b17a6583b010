"""The index of part keys, on a real Lucene in this process."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from strandline.index.documents import MalformedBatch, PartKeyBatch, encode_part_key
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.classes import java
from strandline.index.pylucene.failures import IndexClosed, IndexDamaged, IndexInUse, java_failures
from strandline.index.pylucene.queries import all_of, everything, has_label, label_is, part_id_in
from strandline.index.vm import start_vm, to_java

pytestmark = pytest.mark.unit

LONGEST = 32_766


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    start_vm()
    return tmp_path / "index"


@pytest.fixture
def index(folder: Path) -> Iterator[PartKeyIndex]:
    with PartKeyIndex.open(folder) as opened:
        yield opened


def batch_of(*keys: dict[str, str], first_id: int = 0) -> PartKeyBatch:
    ids = range(first_id, first_id + len(keys))
    return PartKeyBatch.of(ids, [(i, ~i & 2**64 - 1) for i in ids], map(encode_part_key, keys))


def add_packed(index: PartKeyIndex, packed: bytes) -> int:
    """Without Python's checks: how the extension handles bytes."""
    with java_failures():
        return java().part_key_documents.add(index._writer, to_java(packed))


def test_an_added_key_is_found_by_each_of_its_labels_after_a_refresh(index: PartKeyIndex) -> None:
    assert index.add(batch_of({"job": "a", "env": "x"}, {"job": "b", "env": "x"}, first_id=7)) == 2
    assert index.search(label_is("job", "a")) == BitMap()
    index.refresh()
    assert index.search(label_is("job", "a")) == BitMap([7])
    assert index.search(label_is("env", "x")) == BitMap([7, 8])
    assert index.search(label_is("env", "a")) == BitMap()
    assert index.search(everything()) == BitMap([7, 8])
    assert index.count() == 2


def test_a_deleted_key_is_not_found_and_the_others_still_are(index: PartKeyIndex) -> None:
    index.add(batch_of(*({"n": str(i)} for i in range(1000))))
    index.refresh()
    index.delete(BitMap([0, 255, 256, 999, 5000]))
    index.refresh()
    assert index.search(everything()) == BitMap(range(1000)) - BitMap([0, 255, 256, 999])
    assert index.search(label_is("n", "255")) == BitMap()


def test_a_key_that_is_deleted_before_its_first_refresh_is_never_found(index: PartKeyIndex) -> None:
    index.add(batch_of({"a": "1"}, {"a": "2"}))
    index.delete(BitMap([0]))
    index.add(batch_of({"a": "3"}, first_id=0))
    index.refresh()
    assert index.label_values("a").terms == ["2", "3"]


def test_deleting_from_an_id_on_deletes_up_to_the_highest_id(index: PartKeyIndex) -> None:
    ids = [0, 1, 254, 255, 256, 257, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 256, 2**32 - 1]
    index.add(PartKeyBatch.of(ids, [(0, i) for i in ids], [encode_part_key({"id": str(i)}) for i in ids]))
    index.refresh()
    assert index.search(everything()) == BitMap(ids)
    for wanted in ids:
        assert index.search(part_id_in(BitMap([wanted, 3]))) == BitMap([wanted])
    index.delete(BitMap(range(65_536, 2**32)))
    index.refresh()
    assert index.search(everything()) == BitMap([i for i in ids if i < 65_536])


def test_part_ids_narrow_a_query_that_names_fewer_keys_itself(index: PartKeyIndex) -> None:
    index.add(batch_of(*({"n": str(i)} for i in range(1000))))
    index.refresh()
    assert index.search(all_of([label_is("n", "5"), part_id_in(BitMap(range(900)))])) == BitMap([5])
    assert index.search(all_of([label_is("n", "5"), part_id_in(BitMap(range(6, 900)))])) == BitMap()


def test_keys_are_distinct_where_one_name_has_the_bytes_of_two(index: PartKeyIndex) -> None:
    index.add(batch_of({"ab\x01\x00c": "1"}, {"ab": "1", "c": "2"}, {"ab": "3"}, {"ab": "4", "c": "5", "d": "6"}))
    index.refresh()
    assert index.search(label_is("c", "2")) == BitMap([1])
    assert index.search(has_label("ab")) == BitMap([1, 2, 3])
    assert index.search(has_label("c")) == BitMap([1, 3])
    assert index.label_names().terms == ["ab", "ab\x01\x00c", "c", "d"]


def test_text_of_one_to_four_bytes_a_character_is_found_as_it_is(index: PartKeyIndex) -> None:
    texts = ["a", "é", "€", "😀", "aé€😀", "\x00", "\U0010ffff", "\ufffd"]
    index.add(batch_of(*({f"name {text}": text, "all": text} for text in texts)))
    index.refresh()
    for position, text in enumerate(texts):
        assert index.search(label_is("all", text)) == BitMap([position])
        assert index.search(label_is(f"name {text}", text)) == BitMap([position])
        assert index.search(has_label(f"name {text}")) == BitMap([position])
    assert index.label_values("all").terms == sorted(texts)
    assert index.label_names(prefix="name ").terms == sorted(f"name {text}" for text in texts)


def test_a_label_with_the_name_of_an_internal_field_is_a_label_like_any_other(index: PartKeyIndex) -> None:
    names = ["part_id", "key_hash", "part_key", "label_set", "label:", "label:a", "__name__"]
    index.add(batch_of(dict.fromkeys(names, "mine"), first_id=3))
    index.refresh()
    assert all(index.search(label_is(name, "mine")) == BitMap([3]) for name in names)
    assert index.label_names().terms == sorted(names)


def test_a_value_of_the_longest_length_is_found(index: PartKeyIndex) -> None:
    index.add(batch_of({"long": "x" * LONGEST}))
    index.refresh()
    assert index.search(label_is("long", "x" * LONGEST)) == BitMap([0])


def test_a_value_one_byte_longer_is_refused_by_name_and_nothing_is_added(index: PartKeyIndex) -> None:
    with pytest.raises(MalformedBatch, match="the value of label 'long' has 32767 bytes") as refused:
        index.add(batch_of({"ok": "1"}, {"fine": "2", "long": "x" * (LONGEST + 1)}))
    assert refused.value.document == 1
    index.refresh()
    assert index.count() == 0


def test_names_that_are_too_long_together_are_refused(index: PartKeyIndex) -> None:
    half = LONGEST // 2 - 2
    assert index.add(batch_of({"a" * half: "1", "b" * half: "1"})) == 1
    with pytest.raises(MalformedBatch, match=r"the names of its labels up to 'b{100}…' have 32767 bytes"):
        index.add(batch_of({"a" * half: "1", "b" * (half + 1): "1"}))


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (b"\x01\x00b\x01\x001\x01\x00a\x01\x001", "label 'a' comes after 'b': names must be sorted and unique"),
        (b"\x01\x00a\x01\x001\x01\x00a\x01\x002", "label 'a' comes after 'a': names must be sorted and unique"),
        (b"\x01\x00a\x00\x00", "the value of label 'a' is empty"),
        (b"\x00\x00\x01\x001", "a label's name is empty"),
        (b"\x01\x00a", "the value of label 'a' is cut off in its length"),
        (b"\x01", "a label's name is cut off in its length"),
        (b"\x05\x00a", "a label's name has 5 bytes, but the part key ends after 1"),
        (b"\x01\x00a\xff\xff1", "the value of label 'a' has 65535 bytes, but the part key ends after 1"),
        (b"\x01\x00a\x01\x00\xff", "the value of label 'a' is not UTF-8"),
        (b"\x01\x00a\x02\x00\xc0\x80", "the value of label 'a' is not UTF-8"),
        (b"\x01\x00a\x03\x00\xed\xa0\x80", "the value of label 'a' is not UTF-8"),
        (b"\x01\x00\xff\x01\x001", "a label's name is not UTF-8"),
    ],
)
def test_a_part_key_that_is_not_canonical_is_refused_and_nothing_is_added(
    index: PartKeyIndex, key: bytes, reason: str
) -> None:
    good = encode_part_key({"a": "1"})
    with pytest.raises(MalformedBatch) as refused:
        index.add(PartKeyBatch.of([0, 1, 2], [(0, 0)] * 3, [good, key, good]))
    assert refused.value.reason == reason
    assert refused.value.document == 1
    start = 8 + 3 * 24 + len(good)
    assert start <= refused.value.position <= start + len(key)
    index.refresh()
    assert index.count() == 0


def test_a_batch_that_is_truncated_anywhere_adds_nothing(index: PartKeyIndex) -> None:
    packed = batch_of({"a": "1", "b": "é"}, {"a": "2"}).pack()
    for cut in range(len(packed)):
        with pytest.raises(MalformedBatch) as refused:
            add_packed(index, packed[:cut])
        assert 0 <= refused.value.position <= len(packed)
    with pytest.raises(MalformedBatch, match="1 bytes follow the last part key"):
        add_packed(index, packed + b"\x00")
    index.refresh()
    assert index.count() == 0
    assert add_packed(index, packed) == 2


def test_a_count_that_no_array_could_hold_is_refused(index: PartKeyIndex) -> None:
    for count in (2, 2**28, 2**31 - 1, 2**31, 2**32 - 1):
        with pytest.raises(MalformedBatch, match=f"a batch of {count} documents has columns of"):
            add_packed(index, count.to_bytes(4, "little") + bytes(40))


@given(data=st.data())
def test_a_batch_with_changed_bytes_is_added_completely_or_refused(tmp_path_factory, data) -> None:
    start_vm()
    packed = bytearray(batch_of({"a": "1", "b": "é"}, {"b": "2", "zz": "3"}, {"€": "x" * 130}).pack())
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with PartKeyIndex.open(tmp_path_factory.mktemp("hostile")) as index:
        try:
            added = add_packed(index, bytes(packed))
        except MalformedBatch:
            added = 0
        index.refresh()
        assert index.count() == added
        assert added in (0, 3)


def test_the_dump_has_the_id_and_hash_of_every_key_that_is_left(index: PartKeyIndex) -> None:
    hashes = {i: (i * 0x9E3779B97F4A7C15 % 2**64, 2**64 - 1 - i) for i in range(600)}
    for first in (0, 300):
        ids = range(first, first + 300)
        index.add(PartKeyBatch.of(ids, [hashes[i] for i in ids], [encode_part_key({"n": str(i)}) for i in ids]))
        index.refresh()
    index.delete(BitMap([5, 310]))
    index.refresh()
    dumped = {}
    for ids, words in index.ids_and_hashes():
        dumped.update(zip(ids.tolist(), map(tuple, words.tolist()), strict=True))
    assert dumped == {i: words for i, words in hashes.items() if i not in (5, 310)}


def test_part_keys_are_read_as_they_were_added(index: PartKeyIndex) -> None:
    added = batch_of(*({"n": str(i), "é": "€" * i} for i in range(1, 50)), first_id=1)
    index.add(added)
    index.refresh()
    found = index.part_keys(part_id_in(BitMap([3, 40, 77])))
    assert found.part_ids.tolist() == [3, 40]
    assert [found.part_key(i) for i in range(2)] == [added.part_key(2), added.part_key(39)]
    assert np.array_equal(found.key_hashes, added.key_hashes[[2, 39]])
    assert len(index.part_keys(label_is("n", "none"))) == 0


def test_few_keys_are_returned_by_one_search_and_many_are_not(index: PartKeyIndex) -> None:
    for first in (0, 10):
        ids = range(first, first + 10)
        index.add(batch_of(*({"n": str(i % 4)} for i in ids), first_id=first))
        index.refresh()
    found = index.part_keys_up_to(label_is("n", "1"), 5)
    assert found is not None
    assert sorted(found.part_ids.tolist()) == [1, 5, 9, 13, 17]
    assert found.part_keys() == [encode_part_key({"n": "1"})] * 5
    assert [found.part_ids[position] for position in (4, 0)] == found.take(np.array([4, 0])).part_ids.tolist()
    assert found.take(np.array([4, 0])).part_keys() == [encode_part_key({"n": "1"})] * 2
    assert index.part_keys_up_to(label_is("n", "1"), 4) is None
    none = index.part_keys_up_to(label_is("n", "none"), 0)
    assert none is not None
    assert none.part_keys() == []
    index.delete(BitMap([5]))
    index.refresh()
    left = index.part_keys_up_to(label_is("n", "1"), 4)
    assert left is not None
    assert sorted(left.part_ids.tolist()) == [1, 9, 13, 17]


def test_keys_that_were_read_can_be_added_to_another_index_unchanged(index: PartKeyIndex, tmp_path: Path) -> None:
    index.add(batch_of({"a": "1"}, {"b": "2"}, first_id=9))
    index.refresh()
    with PartKeyIndex.open(tmp_path / "copy") as copy:
        copy.add(index.part_keys(everything()))
        copy.refresh()
        assert copy.search(label_is("b", "2")) == BitMap([10])


def test_user_data_and_keys_survive_the_process_as_of_the_commit(folder: Path) -> None:
    with PartKeyIndex.open(folder) as index:
        assert index.user_data() == {}
        index.add(batch_of({"a": "1"}))
        index.commit({"bucket": "17", "dataset": "é"})
        index.add(batch_of({"a": "2"}, first_id=1))
    with PartKeyIndex.open(folder) as index:
        assert index.user_data() == {"bucket": "17", "dataset": "é"}
        assert index.label_values("a").terms == ["1"]
        index.commit({"bucket": "18"})
    with PartKeyIndex.open(folder) as index:
        assert index.user_data() == {"bucket": "18"}


def test_a_folder_has_one_index_at_a_time(folder: Path, index: PartKeyIndex) -> None:
    with pytest.raises(IndexInUse, match="index"):
        PartKeyIndex.open(folder)
    index.close()
    PartKeyIndex.open(folder).close()


def test_a_closed_index_raises_an_error_and_may_be_closed_again(index: PartKeyIndex) -> None:
    index.close()
    index.close()
    with pytest.raises(IndexClosed):
        index.search(everything())
    with pytest.raises(IndexClosed):
        index.add(batch_of({"a": "1"}))


def test_an_index_whose_commit_is_truncated_is_damaged(folder: Path) -> None:
    with PartKeyIndex.open(folder) as index:
        index.add(batch_of({"a": "1"}))
        index.commit({})
    (commit,) = folder.glob("segments_*")
    commit.write_bytes(commit.read_bytes()[:-9])
    with pytest.raises(IndexDamaged, match="the index is damaged"):
        PartKeyIndex.open(folder)


def test_an_index_that_could_not_be_opened_does_not_keep_its_folder(folder: Path) -> None:
    with PartKeyIndex.open(folder) as index:
        index.add(batch_of({"a": "1"}))
        index.commit({})
    # The writer does not read the segment; the first reader does.
    (terms,) = folder.glob("*.tim")
    whole = terms.read_bytes()
    terms.write_bytes(whole[:-9])
    for _ in range(2):
        with pytest.raises(IndexDamaged, match="the index is damaged"):
            PartKeyIndex.open(folder)
    terms.write_bytes(whole)
    with PartKeyIndex.open(folder) as index:
        assert index.search(everything()) == BitMap([0])


def test_threads_add_and_search_at_the_same_time(index: PartKeyIndex) -> None:
    together = threading.Barrier(4)

    def add_many(worker: int) -> None:
        together.wait()
        for i in range(20):
            first = worker * 10_000 + i * 50
            index.add(batch_of(*({"worker": str(worker), "n": str(first + n)} for n in range(50)), first_id=first))
            index.refresh()
            # A worker sees all of its own keys, and only complete refreshes: every key has both labels.
            assert len(index.search(label_is("worker", str(worker)))) == 50 * (i + 1)
            assert index.search(has_label("n")) >= index.search(label_is("worker", str(worker)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_many, range(4)))
    assert index.count() == 4000
