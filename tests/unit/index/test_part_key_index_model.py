"""The index compared with a dict of label sets, through the same additions and deletions."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pyroaring import BitMap

from strandline.index.documents import PartKeyBatch, decode_part_key, encode_part_key
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene import queries
from strandline.index.pylucene.classes import Query
from strandline.index.vm import start_vm

pytestmark = pytest.mark.unit

Labels = dict[str, str]
names = st.sampled_from(["a", "ab", "b", "é", "__name__"])
values = st.sampled_from(["1", "10", "11", "2", "é", "€", "😀"])
label_sets = st.dictionaries(names, values, max_size=4)
# A query, and what it means for one label set under one id.
Case = tuple[Query, Callable[[int, Labels], bool]]


def hash_of(part_id: int) -> tuple[int, int]:
    return part_id * 31, part_id * 37


class IndexBesideModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        start_vm()
        self.folder = Path(tempfile.mkdtemp(prefix="strandline-model-"))
        self.index = PartKeyIndex.open(self.folder)
        self.model: dict[int, Labels] = {}
        self.committed: dict[int, Labels] = {}
        self.next_id = 0

    @initialize(first=st.sampled_from([0, 200, 65_530, 2**31 - 5, 2**32 - 900]))
    def start_ids_at(self, first: int) -> None:
        self.next_id = first

    @rule(keys=st.lists(label_sets, min_size=1, max_size=12), gap=st.integers(0, 3), backwards=st.booleans())
    def add(self, keys: list[Labels], gap: int, backwards: bool) -> None:
        ids = [self.next_id + gap + i for i in range(len(keys))]
        self.next_id = ids[-1] + 1
        if backwards:
            ids.reverse()
        self.index.add(PartKeyBatch.of(ids, map(hash_of, ids), map(encode_part_key, keys)))
        self.model.update(zip(ids, keys, strict=True))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        known = st.sets(st.sampled_from(sorted(self.model))) if self.model else st.just(set[int]())
        gone = data.draw(known)
        self.index.delete(BitMap(gone | {self.next_id + 5}))
        for part_id in gone:
            del self.model[part_id]

    @rule()
    def refresh(self) -> None:
        self.index.refresh()

    @rule()
    def commit(self) -> None:
        self.index.commit({"next": str(self.next_id)})
        self.committed = dict(self.model)

    @rule()
    def reopen(self) -> None:
        self.index.close()
        self.index = PartKeyIndex.open(self.folder)
        self.model = dict(self.committed)

    @rule(data=st.data())
    def find(self, data: st.DataObject) -> None:
        query, means = self.draw_query(data)
        self.index.refresh()
        expected = {i: labels for i, labels in self.model.items() if means(i, labels)}
        assert self.index.search(query) == BitMap(expected)
        fetched = self.index.part_keys(query)
        assert {
            i: decode_part_key(fetched.part_key(position)) for position, i in enumerate(fetched.part_ids.tolist())
        } == expected

    @rule(data=st.data(), label=names, prefix=st.sampled_from(["", "1", "a", "é"]), limit=st.integers(0, 4))
    def count(self, data: st.DataObject, label: str, prefix: str, limit: int) -> None:
        query, means = self.draw_query(data) if data.draw(st.booleans()) else (None, lambda _id, _labels: True)
        self.index.refresh()
        counted = [labels for i, labels in self.model.items() if means(i, labels)]
        all_values = Counter(labels[label] for labels in counted if label in labels)
        all_names = Counter(name for labels in counted for name in labels)
        for wanted, page_of in (
            (all_values, lambda **page: self.index.label_values(label, query, **page)),
            (all_names, lambda **page: self.index.label_names(query, **page)),
        ):
            expected = sorted((term, n) for term, n in wanted.items() if term.startswith(prefix))
            whole = page_of(prefix=prefix)
            assert (list(zip(whole.terms, whole.counts.tolist(), strict=True)), whole.more) == (expected, False)
            paged, after = [], ""
            while limit:
                page = page_of(prefix=prefix, after=after, limit=limit)
                paged += zip(page.terms, page.counts.tolist(), strict=True)
                if not page.more:
                    break
                assert len(page.terms) == limit
                after = page.terms[-1]
            assert paged == (expected if limit else [])
            assert page_of(prefix=prefix, limit=0).more == bool(expected)

    @invariant()
    def dump_has_every_key(self) -> None:
        self.index.refresh()
        dumped = [
            (part_id, tuple(words))
            for ids, hashes in self.index.ids_and_hashes()
            for part_id, words in zip(ids.tolist(), hashes.tolist(), strict=True)
        ]
        assert sorted(dumped) == sorted((part_id, hash_of(part_id)) for part_id in self.model)
        assert self.index.search(queries.everything()) == BitMap(self.model)

    def draw_query(self, data: st.DataObject) -> Case:
        label, value = data.draw(names), data.draw(values)
        several = data.draw(st.lists(values, max_size=3))
        some_ids = BitMap(data.draw(st.sets(st.sampled_from(sorted(self.model)))) if self.model else ())
        simple: list[Case] = [
            (queries.everything(), lambda _id, _labels: True),
            (queries.label_is(label, value), lambda _id, labels: labels.get(label) == value),
            (queries.label_in(label, several), lambda _id, labels: labels.get(label) in several),
            (queries.has_label(label), lambda _id, labels: label in labels),
            (queries.label_starts_with(label, "1"), lambda _id, labels: labels.get(label, "").startswith("1")),
            (queries.label_starts_with(label, ""), lambda _id, labels: label in labels),
            (queries.part_id_in(some_ids), lambda part_id, _labels: part_id in some_ids),
        ]
        (one, one_means), (two, two_means) = data.draw(st.sampled_from(simple)), data.draw(st.sampled_from(simple))
        combined: list[Case] = [
            (one, one_means),
            (queries.all_of([one, two]), lambda i, labels: one_means(i, labels) and two_means(i, labels)),
            (queries.any_of([one, two]), lambda i, labels: one_means(i, labels) or two_means(i, labels)),
            (
                queries.all_of([one], but_none_of=[two]),
                lambda i, labels: one_means(i, labels) and not two_means(i, labels),
            ),
            (queries.all_of([], but_none_of=[one]), lambda i, labels: not one_means(i, labels)),
        ]
        return data.draw(st.sampled_from(combined))

    def teardown(self) -> None:
        self.index.close()
        shutil.rmtree(self.folder)


TestIndexBesideModel = IndexBesideModel.TestCase
TestIndexBesideModel.settings = settings(max_examples=40, stateful_step_count=20)
