"""Cardinality from a real Lucene compared with dictionaries, over several segments, with deletions and queries."""

import tempfile
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene import queries
from strandline.index.pylucene.classes import Query
from strandline.index.pylucene.failures import LuceneFailed
from strandline.index.vm import start_vm

pytestmark = pytest.mark.unit

Labels = dict[str, str]
EVERYTHING = 2**31 - 1

# One name begins another, and UTF-16 would sort the last two the other way round.
names = st.sampled_from(["__name__", "a", "ab", "é", "\uffee", "😀"])
# Labels with few values, each on many keys; and labels with many values, which are counted from the keys if a query
# matches few of these.
values = st.sampled_from(["1", "10", "2", "é", "\uffee", "😀"]) | st.integers(0, 99).map(str)
batches = st.lists(st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=25), max_size=4)


def batch_of(keys: Collection[Labels], first_id: int = 0) -> PartKeyBatch:
    ids = range(first_id, first_id + len(keys))
    return PartKeyBatch.of(ids, [(i, i) for i in ids], map(encode_part_key, keys))


class Model:
    """The same results from a list of label sets."""

    def __init__(self, keys: Collection[Labels]) -> None:
        self.series = len(keys)
        self.pairs = Counter(pair for labels in keys for pair in labels.items())

    def labels(self) -> list[LabelCardinality]:
        values_of: dict[str, list[str]] = {}
        for name, value in self.pairs:
            values_of.setdefault(name, []).append(value)
        return [
            LabelCardinality(
                name,
                values=len(found),
                series=sum(self.pairs[name, value] for value in found),
                value_bytes=sum(len(value.encode()) for value in found),
            )
            for name, found in sorted(values_of.items())
        ]

    def top_pairs(self, limit: int, label: str | None = None) -> list[ValueCardinality]:
        ranked = sorted(self.pairs.items(), key=lambda item: (-item[1], item[0]))
        return [ValueCardinality(*pair, n) for pair, n in ranked if label in (None, pair[0])][:limit]

    def top_labels(self, limit: int, figure: Callable[[LabelCardinality], int]) -> list[LabelCardinality]:
        return sorted(self.labels(), key=lambda label: (-figure(label), label.name))[:limit]


def check(index: PartKeyIndex, keys: Collection[Labels], make_query: Callable[[], Query | None], limit: int) -> None:
    model = Model(keys)
    found = index.cardinality(make_query(), limit=limit)
    assert found.series == model.series
    assert list(found.labels) == model.labels()
    assert found.pairs == len(model.pairs)
    assert list(found.top_pairs_by_series) == model.top_pairs(limit)
    assert list(found.top_metrics_by_series) == model.top_pairs(limit, "__name__")
    assert found.top_labels_by_values(limit) == model.top_labels(limit, lambda label: label.values)
    assert found.top_labels_by_bytes(limit) == model.top_labels(limit, lambda label: label.value_bytes)
    assert found.top_labels_by_series(limit) == model.top_labels(limit, lambda label: label.series)
    for label in ("a", "é", "no such label"):
        assert index.top_values_by_series(label, make_query(), limit=limit) == model.top_pairs(limit, label)


@given(batches=batches, limit=st.integers(0, 6) | st.just(EVERYTHING), data=st.data())
@settings(max_examples=60)
def test_every_figure_counts_the_remaining_keys_that_a_query_matches(
    batches: list[list[Labels]], limit: int, data: st.DataObject
) -> None:
    start_vm()
    keys: dict[int, Labels] = {}
    with tempfile.TemporaryDirectory() as folder, PartKeyIndex.open(Path(folder)) as index:
        for batch in batches:
            index.add(batch_of(batch, first_id=len(keys)))
            keys.update(enumerate(batch, start=len(keys)))
            index.refresh()
        gone = data.draw(st.sets(st.sampled_from(sorted(keys)))) if keys else set[int]()
        index.delete(BitMap(gone))
        index.refresh()
        left = {part_id: labels for part_id, labels in keys.items() if part_id not in gone}
        label, value = data.draw(names), data.draw(values)
        some_ids = BitMap(data.draw(st.sets(st.sampled_from(sorted(keys)))) if keys else ())
        check(index, left.values(), lambda: None, limit)
        check(
            index,
            [labels for labels in left.values() if labels.get(label) == value],
            lambda: queries.label_is(label, value),
            limit,
        )
        check(
            index,
            [labels for part_id, labels in left.items() if part_id in some_ids],
            lambda: queries.part_id_in(some_ids),
            limit,
        )


@pytest.mark.parametrize("matching", [0, 1, 7, 150, 400, 600])
def test_a_query_for_few_keys_and_one_for_many_count_the_same_way(index: PartKeyIndex, matching: int) -> None:
    keys = [{"__name__": f"metric-{i % 7}", "a": f"{i:04}", "é": "x" * (i % 3 + 1)} for i in range(600)]
    for first in (0, 200, 400):
        index.add(batch_of(keys[first : first + 200], first_id=first))
        index.refresh()
    index.delete(BitMap([0, 300]))
    index.refresh()
    ids = BitMap(range(0, 600, 600 // matching) if matching else ())
    left = [labels for i, labels in enumerate(keys) if i in ids and i not in (0, 300)]
    check(index, left, lambda: queries.part_id_in(ids), 5)


def test_labels_that_only_deleted_keys_had_are_not_listed(index: PartKeyIndex) -> None:
    index.add(batch_of([{"a": "1"}, {"a": "1"}, {"a": "2"}, {"b": "1"}]))
    index.refresh()
    index.delete(BitMap([0, 3]))
    index.refresh()
    found = index.cardinality()
    assert found.labels == (LabelCardinality("a", values=2, series=2, value_bytes=2),)
    assert found.top_pairs_by_series == (ValueCardinality("a", "1", 1), ValueCardinality("a", "2", 1))
    assert index.top_values_by_series("b") == []


def test_of_equal_counts_the_first_by_name_are_listed(index: PartKeyIndex) -> None:
    index.add(batch_of([{"b": value} for value in "54321"]))
    index.add(batch_of([{"a": "9", "c": "x"}], first_id=5))
    index.refresh()
    assert [entry.value for entry in index.top_values_by_series("b", limit=3)] == ["1", "2", "3"]
    pairs = [(pair.label, pair.value) for pair in index.cardinality(limit=3).top_pairs_by_series]
    assert pairs == [("a", "9"), ("b", "1"), ("b", "2")]
    assert [label.name for label in index.cardinality().top_labels_by_values(2)] == ["b", "a"]


def test_a_value_of_many_segments_is_one_value(index: PartKeyIndex) -> None:
    for first in range(5):
        index.add(batch_of([{"a": "same"}, {"a": f"own-{first}"}], first_id=2 * first))
        index.refresh()
    assert index.cardinality().labels == (LabelCardinality("a", values=6, series=10, value_bytes=4 + 5 * 5),)
    assert index.top_values_by_series("a", limit=1) == [ValueCardinality("a", "same", 5)]


def test_the_longest_names_and_values_are_counted(index: PartKeyIndex) -> None:
    name, value = "n" * 32_000, "é" * 16_383
    index.add(batch_of([{name: value}, {"short": value}]))
    index.refresh()
    for query in (None, queries.part_id_in(BitMap([0]))):
        found = index.cardinality(query)
        assert found.labels[0] == LabelCardinality(name, values=1, series=1, value_bytes=32_766)
        assert found.top_pairs_by_series[0] == ValueCardinality(name, value, 1)


def test_a_query_for_a_single_search_is_searched_once(index: PartKeyIndex) -> None:
    index.add(batch_of([{"__name__": "up", "a": f"value-{i}"} for i in range(20)]))
    index.refresh()
    costly = queries.label_matches("a", ".*7", max_terms=20, max_ms=10_000)
    assert index.cardinality(costly).top_metrics_by_series == (ValueCardinality("__name__", "up", 2),)


def test_an_empty_index_has_no_labels(index: PartKeyIndex) -> None:
    found = index.cardinality()
    assert (found.series, found.pairs, found.labels, found.top_pairs_by_series) == (0, 0, (), ())


def test_a_limit_below_zero_is_refused(index: PartKeyIndex) -> None:
    with pytest.raises(LuceneFailed, match="a limit of -1 is below 0"):
        index.cardinality(limit=-1)
    with pytest.raises(LuceneFailed, match="a limit of -1 is below 0"):
        index.top_values_by_series("a", limit=-1)
