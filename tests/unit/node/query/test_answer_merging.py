"""Answers of several shards, put together."""

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


def in_order(some: object) -> list[Labels]:
    return sorted(some, key=lambda one: [(a.encode(), b.encode()) for a, b in one])  # type: ignore[call-overload, no-any-return]


def keys_of(some: object) -> KeyBytes:
    return KeyBytes(*_joined([encode_part_key(dict(labels)) for labels in in_order(some)]))


def samples_answer(shard: dict[Labels, dict[int, float]], number: int) -> SamplesAnswer:
    ordered = [sorted(shard[labels].items()) for labels in in_order(shard)]
    first = np.cumsum([0, *map(len, ordered)], dtype=np.int64)
    time = np.array([time for some in ordered for time, _ in some], dtype=np.int64)
    value = np.array([value for some in ordered for _, value in some], dtype=np.float64)
    return SamplesAnswer(keys_of(shard), first, time, value, (f"warning {number}",))


def same_keys(one: KeyBytes, other: KeyBytes) -> bool:
    return one.offsets.tolist() == other.offsets.tolist() and one.data.tobytes() == other.data.tobytes()


@given(SHARDS)
def test_samples_are_merged_from_all_shards_and_the_higher_shard_wins(
    shards: list[dict[Labels, dict[int, float]]],
) -> None:
    expected: dict[Labels, dict[int, float]] = {}
    for shard in shards:
        for labels, samples in shard.items():
            expected[labels] = expected.get(labels, {}) | samples
    answers = [samples_answer(shard, number) for number, shard in enumerate(shards)]
    whole, wanted = merge_samples_answers(answers), samples_answer(expected, 0)
    assert same_keys(whole.keys, wanted.keys)
    assert whole.first_sample.tolist() == wanted.first_sample.tolist()
    assert (whole.time.tolist(), whole.value.tolist()) == (wanted.time.tolist(), wanted.value.tolist())
    assert whole.warnings == tuple(f"warning {number}" for number in range(len(shards)))


def test_the_bits_of_values_are_preserved() -> None:
    stale = np.array([0x7FF0_0000_0000_0002, 0x7FF8_0000_0000_0001], dtype=np.uint64).view(np.float64)
    one = samples_answer({(("a", "b"),): {0: 1.0, 1: 1.0}}, 0)
    one = SamplesAnswer(one.keys, one.first_sample, one.time, stale)
    whole = merge_samples_answers([one, samples_answer({(("a", "b"),): {2: 1.0}}, 1)])
    assert whole.value.view(np.uint64).tolist()[:2] == stale.view(np.uint64).tolist()


@given(SHARDS, st.integers(0, 8))
def test_series_are_merged_from_all_shards_up_to_the_limit(
    shards: list[dict[Labels, dict[int, float]]], limit: int
) -> None:
    every = set().union(*shards)
    whole = merge_series([SeriesAnswer(keys_of(shard), more=False) for shard in shards], limit)
    assert same_keys(whole.keys, keys_of(in_order(every)[:limit]))
    assert whole.more is (len(every) > limit)
    cut = merge_series([SeriesAnswer(keys_of(shard), more=True) for shard in shards], 100)
    assert cut.more


@given(st.lists(st.dictionaries(TEXTS, st.integers(1, 9), max_size=6), min_size=1, max_size=4), st.integers(1, 6))
def test_terms_are_truncated_only_where_their_counts_are_complete(shards: list[dict[str, int]], limit: int) -> None:
    def answer(shard: dict[str, int]) -> TermsAnswer:
        ordered = sorted(shard, key=str.encode)[:limit]
        counts = np.array([shard[term] for term in ordered], dtype=np.int64)
        return TermsAnswer(*_joined([term.encode() for term in ordered]), counts, more=len(shard) > limit)

    every: Counter[str] = Counter()
    for shard in shards:
        every.update(shard)
    whole = merge_terms([answer(shard) for shard in shards], limit)
    found = dict(zip(whole.terms(), whole.counts.tolist(), strict=True))
    assert list(found) == sorted(every, key=str.encode)[: len(found)]
    assert all(every[term] == count for term, count in found.items())
    assert whole.more is (len(found) < len(every))
    assert len(found) == min(limit, len(every))


def test_one_answer_alone_is_not_copied() -> None:
    samples, series = samples_answer({(("a", "b"),): {0: 1.0}}, 0), SeriesAnswer(keys_of([(("a", "b"),)]), more=False)
    terms = TermsAnswer(*_joined([b"a"]), np.array([1]), more=False)
    assert merge_samples_answers([samples]) is samples
    assert merge_series([series], 1) is series
    assert merge_terms([terms], 1) is terms


def test_buckets_are_ordered_by_time_and_shard_and_the_newest_are_kept() -> None:
    def answer(shard: int, *buckets: int) -> BucketsAnswer:
        return BucketsAnswer(tuple(BucketFigures(shard, one, 0, 0, 0, 0, 0, 0, "open") for one in buckets))

    whole = merge_buckets([answer(0, 1, 2, 3), answer(1, 2, 3, 4)], 3)
    assert [(one.bucket, one.shard) for one in whole.buckets] == [(2, 0), (2, 1), (3, 0), (3, 1), (4, 1)]
    assert merge_buckets([answer(0, 1)], 0).buckets == ()
