"""Merging the answers of several shards."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.node.query.answer_merging import (
    merge_buckets,
    merge_samples_answers,
    merge_series,
    merge_terms,
)
from strandline.node.query.answers import BucketsAnswer, SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.shard.bucket_report import BucketFigures

pytestmark = pytest.mark.unit

Labels = tuple[tuple[str, str], ...]
TEXTS = st.sampled_from(["a", "ab", "abcdefghi", "abcdefgh", "b", "é", "\0", "a\0"])
LABELS = st.dictionaries(TEXTS, TEXTS, max_size=2).map(lambda labels: tuple(sorted(labels.items())))
SAMPLES = st.dictionaries(st.integers(0, 6), st.integers(0, 99).map(float), min_size=1)
SHARDS = st.lists(st.dictionaries(LABELS, SAMPLES, max_size=6), min_size=1, max_size=5)


def _joined(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, texts)], dtype=np.int64), np.frombuffer(bytearray(b"".join(texts)), dtype=np.uint8)


def in_order(label_sets: object) -> list[Labels]:
    return sorted(label_sets, key=lambda labels: [(a.encode(), b.encode()) for a, b in labels])  # type: ignore[call-overload, no-any-return]


def keys_of(label_sets: object) -> KeyBytes:
    return KeyBytes(*_joined([encode_part_key(dict(labels)) for labels in in_order(label_sets)]))


def samples_answer(shard: dict[Labels, dict[int, float]], number: int) -> SamplesAnswer:
    ordered = [sorted(shard[labels].items()) for labels in in_order(shard)]
    first = np.cumsum([0, *map(len, ordered)], dtype=np.int64)
    time = np.array([time for samples in ordered for time, _ in samples], dtype=np.int64)
    value = np.array([value for samples in ordered for _, value in samples], dtype=np.float64)
    return SamplesAnswer(keys_of(shard), first, time, value, (f"warning {number}",))


def same_keys(first: KeyBytes, second: KeyBytes) -> bool:
    return first.offsets.tolist() == second.offsets.tolist() and first.data.tobytes() == second.data.tobytes()


@given(SHARDS)
def test_samples_are_merged_from_all_shards_and_the_higher_shard_wins(
    shards: list[dict[Labels, dict[int, float]]],
) -> None:
    expected: dict[Labels, dict[int, float]] = {}
    for shard in shards:
        for labels, samples in shard.items():
            expected[labels] = expected.get(labels, {}) | samples
    answers = [samples_answer(shard, number) for number, shard in enumerate(shards)]
    merged, expected_answer = merge_samples_answers(answers), samples_answer(expected, 0)
    assert same_keys(merged.keys, expected_answer.keys)
    assert merged.first_sample.tolist() == expected_answer.first_sample.tolist()
    assert (merged.time.tolist(), merged.value.tolist()) == (
        expected_answer.time.tolist(),
        expected_answer.value.tolist(),
    )
    assert merged.warnings == tuple(f"warning {number}" for number in range(len(shards)))


def test_the_bits_of_values_are_preserved() -> None:
    stale = np.array([0x7FF0_0000_0000_0002, 0x7FF8_0000_0000_0001], dtype=np.uint64).view(np.float64)
    answer = samples_answer({(("a", "b"),): {0: 1.0, 1: 1.0}}, 0)
    answer = SamplesAnswer(answer.keys, answer.first_sample, answer.time, stale)
    merged = merge_samples_answers([answer, samples_answer({(("a", "b"),): {2: 1.0}}, 1)])
    assert merged.value.view(np.uint64).tolist()[:2] == stale.view(np.uint64).tolist()


@given(SHARDS, st.integers(0, 8))
def test_series_are_merged_from_all_shards_up_to_the_limit(
    shards: list[dict[Labels, dict[int, float]]], limit: int
) -> None:
    all_series = set().union(*shards)
    merged = merge_series([SeriesAnswer(keys_of(shard), more=False) for shard in shards], limit)
    assert same_keys(merged.keys, keys_of(in_order(all_series)[:limit]))
    assert merged.more is (len(all_series) > limit)
    truncated = merge_series([SeriesAnswer(keys_of(shard), more=True) for shard in shards], 100)
    assert truncated.more


@given(st.lists(st.dictionaries(TEXTS, st.integers(1, 9), max_size=6), min_size=1, max_size=4), st.integers(1, 6))
def test_terms_are_truncated_only_where_their_counts_are_complete(shards: list[dict[str, int]], limit: int) -> None:
    def answer(shard: dict[str, int]) -> TermsAnswer:
        ordered = sorted(shard, key=str.encode)[:limit]
        counts = np.array([shard[term] for term in ordered], dtype=np.int64)
        return TermsAnswer(*_joined([term.encode() for term in ordered]), counts, more=len(shard) > limit)

    totals: Counter[str] = Counter()
    for shard in shards:
        totals.update(shard)
    merged = merge_terms([answer(shard) for shard in shards], limit)
    counts_of = dict(zip(merged.terms(), merged.counts.tolist(), strict=True))
    assert list(counts_of) == sorted(totals, key=str.encode)[: len(counts_of)]
    assert all(totals[term] == count for term, count in counts_of.items())
    assert merged.more is (len(counts_of) < len(totals))
    assert len(counts_of) == min(limit, len(totals))


def test_a_single_answer_is_not_copied() -> None:
    samples, series = samples_answer({(("a", "b"),): {0: 1.0}}, 0), SeriesAnswer(keys_of([(("a", "b"),)]), more=False)
    terms = TermsAnswer(*_joined([b"a"]), np.array([1]), more=False)
    assert merge_samples_answers([samples]) is samples
    assert merge_series([series], 1) is series
    assert merge_terms([terms], 1) is terms


def test_buckets_are_ordered_by_time_and_shard_and_the_newest_are_kept() -> None:
    def answer(shard: int, *buckets: int) -> BucketsAnswer:
        return BucketsAnswer(tuple(BucketFigures(shard, bucket, 0, 0, 0, 0, 0, 0, "open") for bucket in buckets))

    merged = merge_buckets([answer(0, 1, 2, 3), answer(1, 2, 3, 4)], 3)
    assert [(bucket.bucket, bucket.shard) for bucket in merged.buckets] == [(2, 0), (2, 1), (3, 0), (3, 1), (4, 1)]
    assert merge_buckets([answer(0, 1)], 0).buckets == ()
