"""Merges the answers of several shards, given in the order of their numbers. A single answer is returned as it is."""

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
    """Every series once, at most `limit`."""
    merged = _by_pairs(answers, _two_series)
    if len(merged.keys) <= limit:
        return merged
    offsets = merged.keys.offsets[: limit + 1]
    return SeriesAnswer(KeyBytes(offsets, merged.keys.data[: offsets[-1]]), more=True, warnings=merged.warnings)


def merge_terms(answers: Sequence[TermsAnswer], limit: int) -> TermsAnswer:
    """Every term once, at most `limit`, with the sum of the shards' counts.

    Each shard lists its first `limit` terms. So a term of the result is in the list of every shard that has it, and its
    count is complete.
    """
    merged = _by_pairs(answers, _two_terms)
    if len(merged) <= limit:
        return merged
    offsets = merged.offsets[: limit + 1]
    return replace(merged, offsets=offsets, data=merged.data[: offsets[-1]], counts=merged.counts[:limit], more=True)


def merge_samples_answers(answers: Sequence[SamplesAnswer]) -> SamplesAnswer:
    """Every series once, with the samples of all shards. If two have a sample of the same time, the higher shard's."""
    return _by_pairs(answers, _two_samples)


def merge_buckets(answers: Sequence[BucketsAnswer], limit: int) -> BucketsAnswer:
    """The newest buckets of all shards: those of the newest `limit` bucket numbers."""
    found = sorted((one for answer in answers for one in answer.buckets), key=lambda one: (one.bucket, one.shard))
    kept = set(sorted({one.bucket for one in found})[-limit:] if limit else ())
    warnings = tuple(warning for answer in answers for warning in answer.warnings)
    return BucketsAnswer(tuple(one for one in found if one.bucket in kept), warnings)


@dataclass(frozen=True, slots=True)
class _Joined:
    """The distinct texts or keys of two lists, and the position of each in either list, -1 if it is not in it."""

    offsets: I64s
    data: npt.NDArray[np.uint8]
    one: Rows
    other: Rows


def _joined(join: Callable[..., int], old: KeyBytes, new: KeyBytes) -> _Joined:
    total = len(old) + len(new)
    one, other = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    found = join(old.data, old.offsets, new.data, new.offsets, one, other)
    one, other = one[:found], other[:found]
    offsets, data = np.empty(found + 1, dtype=np.int64), np.empty(len(old.data) + len(new.data), dtype=np.uint8)
    end = gather_joined(old.data, old.offsets, new.data, new.offsets, one, other, data, offsets)
    return _Joined(offsets, data[:end], one, other)


def _by_pairs(answers: Sequence[Merged], merge: Callable[[Merged, Merged], Merged]) -> Merged:
    """Merge neighbours repeatedly. The second of two answers is always that of the higher shards."""
    remaining = list(answers)
    while len(remaining) > 1:
        pairs = [remaining[at : at + 2] for at in range(0, len(remaining), 2)]
        remaining = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return remaining[0]


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
    for positions, of_shard in ((joined.one, old.counts), (joined.other, new.counts)):
        has_term = positions >= 0
        counts[has_term] += of_shard[positions[has_term]]
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
