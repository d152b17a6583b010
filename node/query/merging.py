"""Answers of several shards as one. Given in the order of the shards' numbers; one that is alone comes back itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows
from strandline.index.key_bytes import KeyBytes
from strandline.node.query.answers import BucketsAnswer, SamplesAnswer, SeriesAnswer, TermsAnswer
from strandline.node.query.kernels.joining import gather_joined, join_keys, join_texts, merge_samples

Merged = TypeVar("Merged", SeriesAnswer, TermsAnswer, SamplesAnswer)


def merge_series(answers: Sequence[SeriesAnswer], limit: int) -> SeriesAnswer:
    """Every series once, at most so many."""
    whole = _by_pairs(answers, _two_series)
    if len(whole.keys) <= limit:
        return whole
    offsets = whole.keys.offsets[: limit + 1]
    return SeriesAnswer(KeyBytes(offsets, whole.keys.data[: offsets[-1]]), more=True, warnings=whole.warnings)


def merge_terms(answers: Sequence[TermsAnswer], limit: int) -> TermsAnswer:
    """Every term once, at most so many, with the series of all shards counted together.

    Each shard gave at most as many, the first ones that it has. So whatever is among the first of all is in the list of
    every shard that has it, and its count is whole.
    """
    whole = _by_pairs(answers, _two_terms)
    if len(whole) <= limit:
        return whole
    offsets = whole.offsets[: limit + 1]
    return replace(whole, offsets=offsets, data=whole.data[: offsets[-1]], counts=whole.counts[:limit], more=True)


def merge_samples_answers(answers: Sequence[SamplesAnswer]) -> SamplesAnswer:
    """Every series once, with the samples of all shards; the higher shard wins where two have a sample at one time."""
    return _by_pairs(answers, _two_samples)


def merge_buckets(answers: Sequence[BucketsAnswer], limit: int) -> BucketsAnswer:
    """The newest buckets of all shards, at most so many times of them."""
    found = sorted((one for answer in answers for one in answer.buckets), key=lambda one: (one.bucket, one.shard))
    kept = set(sorted({one.bucket for one in found})[-limit:] if limit else ())
    warnings = tuple(warning for answer in answers for warning in answer.warnings)
    return BucketsAnswer(tuple(one for one in found if one.bucket in kept), warnings)


@dataclass(frozen=True, slots=True)
class _Joined:
    """Texts or keys of two lists, each once, and the place of each in either list, -1 where it is not."""

    offsets: I64s
    data: npt.NDArray[np.uint8]
    one: Rows
    other: Rows


def _joined(join: Callable[..., int], old: KeyBytes, new: KeyBytes) -> _Joined:
    most = len(old) + len(new)
    one, other = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    found = join(old.data, old.offsets, new.data, new.offsets, one, other)
    one, other = one[:found], other[:found]
    offsets, data = np.empty(found + 1, dtype=np.int64), np.empty(len(old.data) + len(new.data), dtype=np.uint8)
    end = gather_joined(old.data, old.offsets, new.data, new.offsets, one, other, data, offsets)
    return _Joined(offsets, data[:end], one, other)


def _by_pairs(answers: Sequence[Merged], merge: Callable[[Merged, Merged], Merged]) -> Merged:
    """Only neighbours are merged, so that the higher shard stays the higher one."""
    left = list(answers)
    while len(left) > 1:
        pairs = [left[at : at + 2] for at in range(0, len(left), 2)]
        left = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return left[0]


def _two_series(old: SeriesAnswer, new: SeriesAnswer) -> SeriesAnswer:
    warnings, more = old.warnings + new.warnings, old.more or new.more
    for one, other in ((old, new), (new, old)):
        if not len(other.keys):
            return replace(one, more=more, warnings=warnings)
    joined = _joined(join_keys, old.keys, new.keys)
    return SeriesAnswer(KeyBytes(joined.offsets, joined.data), more, warnings)


def _two_terms(old: TermsAnswer, new: TermsAnswer) -> TermsAnswer:
    joined = _joined(join_texts, KeyBytes(old.offsets, old.data), KeyBytes(new.offsets, new.data))
    counts = np.zeros(len(joined.one), dtype=np.int64)
    for places, of_shard in ((joined.one, old.counts), (joined.other, new.counts)):
        there = places >= 0
        counts[there] += of_shard[places[there]]
    return TermsAnswer(
        joined.offsets,
        joined.data,
        counts,
        old.more or new.more,
        old.warnings + new.warnings,
        of_all=old.of_all and new.of_all,
    )


def _two_samples(old: SamplesAnswer, new: SamplesAnswer) -> SamplesAnswer:
    warnings = old.warnings + new.warnings
    for one, other in ((old, new), (new, old)):
        if not len(other.keys):
            return replace(one, warnings=warnings)
    joined = _joined(join_keys, old.keys, new.keys)
    samples = len(old.time) + len(new.time)
    first = np.empty(len(joined.one) + 1, dtype=np.int64)
    time, value = np.empty(samples, dtype=np.int64), np.empty(samples, dtype=np.float64)
    samples = merge_samples(
        old.first_sample,
        old.time,
        old.value.view(np.int64),
        new.first_sample,
        new.time,
        new.value.view(np.int64),
        joined.one,
        joined.other,
        first,
        time,
        value.view(np.int64),
    )
    return SamplesAnswer(KeyBytes(joined.offsets, joined.data), first, time[:samples], value[:samples], warnings)
