"""Merging the cardinality of several shards, compared with a model that counts the labels of all series."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.index.documents import TermCounts
from strandline.node.query.answers import CardinalityAnswer, LabelTerms, SeriesCount
from strandline.node.query.cardinality_merging import merge_cardinality
from strandline.node.query.hash_samples import HashSample, distinct_share, lowest
from strandline.node.query.label_terms import list_terms

pytestmark = pytest.mark.unit

Series = frozenset[tuple[str, str]]
NAMES = st.sampled_from(["__name__", "a", "é", "\0"])
VALUES = st.sampled_from(["x", "xy", "abcdefghi", "é", "\0", "x\0"])
SERIES = st.dictionaries(NAMES, VALUES, max_size=3).map(lambda labels: frozenset(labels.items()))
# No series is in two shards: only one shard counts a shared series.
SHARDS = st.lists(st.tuples(SERIES, st.integers(0, 2)), max_size=12, unique_by=lambda one: one[0])
PLENTY = 1 << 20


class ModelKeys:
    """`CountedKeys` of series in plain Python."""

    def __init__(self, series: Sequence[Series]) -> None:
        self.series = series
        self.pairs = Counter(chain.from_iterable(series))

    def labels(self) -> tuple[LabelCardinality, ...]:
        names = sorted({name for name, _ in self.pairs}, key=str.encode)
        return tuple(
            LabelCardinality(name, len(counts), sum(counts.values()), sum(len(value.encode()) for value in counts))
            for name in names
            for counts in [self._counts_of(name)]
        )

    def top(self, limit: int, label: str | None = None) -> tuple[ValueCardinality, ...]:
        ranked = sorted(self.pairs.items(), key=lambda item: (-item[1], item[0][0].encode(), item[0][1].encode()))
        return tuple(ValueCardinality(*pair, n) for pair, n in ranked if label in (None, pair[0]))[:limit]

    def values(self, label: str) -> TermCounts:
        counts = self._counts_of(label)
        texts = sorted(value.encode() for value in counts)
        return TermCounts(
            np.cumsum([0, *map(len, texts)], dtype=np.uint32),
            np.frombuffer(b"".join(texts), dtype=np.uint8),
            np.array([counts[text.decode()] for text in texts], dtype=np.uint32),
            more=False,
        )

    def answer(self, limit: int, listed_bytes: int, warnings: tuple[str, ...] = ()) -> CardinalityAnswer:
        labels = self.labels()
        terms: LabelTerms = list_terms(self, labels, listed_bytes, lambda: None)  # type: ignore[arg-type]
        tops = self.top(limit), self.top(limit, "__name__"), self.top(limit, "a")
        return CardinalityAnswer(len(self.series), labels, *tops, terms, warnings=warnings)

    def _counts_of(self, label: str) -> dict[str, int]:
        return {value: series for (name, value), series in self.pairs.items() if name == label}


def by_shard(placed: list[tuple[Series, int]]) -> list[ModelKeys]:
    return [ModelKeys([series for series, at in placed if at == shard]) for shard in range(3)]


@given(SHARDS, st.integers(0, 4))
def test_figures_and_tops_cover_all_series(placed: list[tuple[Series, int]], limit: int) -> None:
    """The shards' tops have a single entry, so that they alone can't give the correct tops."""
    answers = [shard.answer(1, PLENTY, (f"warning {place}",)) for place, shard in enumerate(by_shard(placed))]
    merged, model = merge_cardinality(answers, limit, label="a"), ModelKeys([series for series, _ in placed])
    assert (merged.series, merged.labels, merged.is_exact) == (len(placed), model.labels(), True)
    assert merged.top_metrics_by_series[:1] == model.top(min(1, limit), "__name__")
    shared = {
        name
        for name, n in Counter(label.name for shard_answer in answers for label in shard_answer.labels).items()
        if n > 1
    }
    for top, label in ((merged.top_metrics_by_series, "__name__"), (merged.top_values_by_series, "a")):
        if label in shared:
            assert top == model.top(limit, label)
    assert merged.warnings == ("warning 0", "warning 1", "warning 2")


@given(SHARDS)
def test_tops_of_the_shards_length_are_exact_for_every_label(placed: list[tuple[Series, int]]) -> None:
    merged = merge_cardinality([shard.answer(4, PLENTY) for shard in by_shard(placed)], 4, label="a")
    model = ModelKeys([series for series, _ in placed])
    tops = (merged.top_pairs_by_series, merged.top_metrics_by_series, merged.top_values_by_series)
    assert tops == (model.top(4), model.top(4, "__name__"), model.top(4, "a"))


@given(SHARDS)
def test_unlisted_values_are_marked_and_short_samples_count_them(
    placed: list[tuple[Series, int]],
) -> None:
    answers = [shard.answer(100, 1) for shard in by_shard(placed)]
    merged, model = merge_cardinality(answers, 100), ModelKeys([series for series, _ in placed])
    in_shards = Counter(label.name for shard_answer in answers for label in shard_answer.labels)
    assert set(merged.estimated_labels) == {name for name, n in in_shards.items() if n > 1}
    assert [(label.name, label.values) for label in merged.labels] == [
        (label.name, label.values) for label in model.labels()
    ]
    assert merged.top_pairs_by_series == model.top(100)


def test_the_values_of_the_smallest_labels_are_listed_while_they_fit() -> None:
    """There are 1,000 values of `many` and one of `one`: 100 bytes are enough only for the latter."""
    shards = [[frozenset({("many", f"{shard}-{n}"), ("one", "x")}) for n in range(1000)] for shard in range(2)]
    merged = merge_cardinality([ModelKeys(series).answer(3, 100) for series in shards], 3)
    assert merged.estimated_labels == ("many",)
    assert merged.labels[1] == LabelCardinality("one", 1, 2000, 1)
    assert merged.top_pairs_by_series[0] == ValueCardinality("one", "x", 2000)


def test_a_sample_estimates_how_many_values_shards_share() -> None:
    """Two shards with 60,000 values each share 20,000 of them: together they have 100,000."""
    values = [range(60_000), range(40_000, 100_000)]
    shards = [
        ModelKeys([frozenset({("id", f"{value:08}")}) for value in values_of_shard]) for values_of_shard in values
    ]
    [label] = merge_cardinality([shard.answer(1, 1) for shard in shards], 1).labels
    assert label.values == pytest.approx(100_000, rel=0.01)
    assert label.value_bytes == pytest.approx(800_000, rel=0.01)
    # One shard lists the values of which the other has only a sample.
    [label] = merge_cardinality([shards[0].answer(1, PLENTY << 4), shards[1].answer(1, 1)], 1).labels
    assert label.values == pytest.approx(100_000, rel=0.01)


def test_a_series_estimate_is_passed_on_and_marked() -> None:
    answers = [ModelKeys([frozenset({("a", "x")})]).answer(1, PLENTY)] * 2
    merged = merge_cardinality(answers, 1, series=SeriesCount(1, is_exact=False))
    assert (merged.series, merged.estimated_series, merged.is_exact) == (1, True, False)


@given(st.lists(st.tuples(st.sets(st.integers(0, 2**64 - 1), max_size=20), st.integers(1, 30)), min_size=1))
def test_below_all_bounds_every_hash_counts_once(shards: list[tuple[set[int], int]]) -> None:
    samples = []
    for hashes, max_hashes in shards:
        sample_hashes = lowest(np.array(sorted(hashes, reverse=True), dtype=np.uint64), max_hashes)
        assert sample_hashes.tolist() == sorted(hashes)[:max_hashes]
        samples.append(HashSample(sample_hashes, len(hashes) <= max_hashes))
    share = distinct_share(samples)
    assert 0 < share <= 1
    if all(sample.is_complete for sample in samples) and any(hashes for hashes, _ in shards):
        union = set[int]().union(*(hashes for hashes, _ in shards))
        assert share == len(union) / sum(len(hashes) for hashes, _ in shards)
    if not set.intersection(*(hashes for hashes, _ in shards)) and len(shards) == 2:
        assert share == 1.0
