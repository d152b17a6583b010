"""Merges the cardinality of several shards. The number of distinct values of a label is exact if the shards list them,
and otherwise estimated from samples of their hashes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np

from strandline.index.cardinality import METRIC_NAME, LabelCardinality, ValueCardinality
from strandline.node.query.answer_merging import merge_terms
from strandline.node.query.answers import CardinalityAnswer, LabelTerms, SeriesCount, TermsAnswer
from strandline.node.query.hash_samples import HashSample, distinct_share
from strandline.node.query.label_terms import SAMPLED_HASHES, text_hashes

Top = Sequence[ValueCardinality]
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class _OfShard:
    """A label in one shard: its figures, and its values or a sample of their hashes."""

    figures: LabelCardinality
    values: TermsAnswer | HashSample

    def hashes(self) -> HashSample:
        if isinstance(self.values, HashSample):
            return self.values
        return HashSample(np.sort(text_hashes(self.values.data, self.values.offsets)), is_complete=True)


@dataclass(frozen=True, slots=True)
class _Label:
    """A label, merged. `top` has its values with the most series; None if only the tops of each shard are known."""

    figures: LabelCardinality
    top: Top | None = None
    is_exact: bool = True


def merge_cardinality(
    answers: Sequence[CardinalityAnswer], limit: int, *, label: str | None = None, series: SeriesCount | None = None
) -> CardinalityAnswer:
    """Merge the figures of shards that count each series in one shard only. Tops have `limit` entries. `label` is the
    label whose values are ranked. `series` is the number of series if the shards could not exclude each other's series.
    """
    of_shards: dict[str, list[_OfShard]] = defaultdict(list)
    for answer in answers:
        for index, figures in enumerate(answer.labels):
            of_shards[figures.name].append(_OfShard(figures, _values(answer.terms, index)))
    labels = {name: _merged(name, of_shards[name], limit) for name in sorted(of_shards)}
    return CardinalityAnswer(
        sum(answer.series for answer in answers) if series is None else series.series,
        tuple(one.figures for one in labels.values()),
        _top((answer.top_pairs_by_series for answer in answers), labels, labels, limit),
        _top((answer.top_metrics_by_series for answer in answers), (METRIC_NAME,), labels, limit),
        _top((answer.top_values_by_series for answer in answers), () if label is None else (label,), labels, limit),
        estimated_labels=tuple(name for name, one in labels.items() if not one.is_exact),
        estimated_series=series is not None and not series.is_exact,
        samples=_samples(answers),
        warnings=tuple(warning for answer in answers for warning in answer.warnings),
    )


def _samples(answers: Sequence[CardinalityAnswer]) -> int | None:
    known = [answer.samples for answer in answers if answer.samples is not None]
    return sum(known) if known else None


def _values(terms: LabelTerms | None, index: int) -> TermsAnswer | HashSample:
    """The values of the label with this index, or hashes of them."""
    if terms is None:
        return HashSample(np.zeros(0, dtype=np.uint64), is_complete=False)
    first, end = terms.first_term[index : index + 2].tolist()
    if first == end:
        hashes = terms.hashes[slice(*terms.first_hash[index : index + 2].tolist())]
        return HashSample(hashes, is_complete=len(hashes) < SAMPLED_HASHES)
    offsets = terms.offsets[first : end + 1]
    data = terms.data[offsets[0] : offsets[-1]]
    return TermsAnswer(offsets - offsets[0], data, terms.counts[first:end], more=False)


def _merged(name: str, of_shards: Sequence[_OfShard], limit: int) -> _Label:
    if len(of_shards) == 1:
        # The tops of this shard are the tops of all.
        return _Label(of_shards[0].figures)
    figures = [one.figures for one in of_shards]
    series = sum(one.series for one in figures)
    lists = [one.values for one in of_shards if isinstance(one.values, TermsAnswer)]
    if len(lists) == len(of_shards):
        merged = merge_terms(lists, _NO_LIMIT)
        return _Label(LabelCardinality(name, len(merged), series, len(merged.data)), _top_of(name, merged, limit))
    share = distinct_share([one.hashes() for one in of_shards])
    values = max(round(share * sum(one.values for one in figures)), *(one.values for one in figures))
    size = max(round(share * sum(one.value_bytes for one in figures)), *(one.value_bytes for one in figures))
    return _Label(LabelCardinality(name, values, series, size), is_exact=False)


def _top_of(name: str, terms: TermsAnswer, limit: int) -> Top:
    # Stable: terms with equal counts stay in their order.
    chosen = np.argsort(-terms.counts, kind="stable")[:limit]
    return [
        ValueCardinality(name, terms.data[terms.offsets[at] : terms.offsets[at + 1]].tobytes().decode(), series)
        for at, series in zip(chosen.tolist(), terms.counts[chosen].tolist(), strict=True)
    ]


def _top(
    tops: Iterable[Top], names: Iterable[str], labels: Mapping[str, _Label], limit: int
) -> tuple[ValueCardinality, ...]:
    """The top of the labels with these names, from their merged values if known, else from the tops of the shards."""
    series: dict[tuple[str, str], int] = defaultdict(int)
    for top in tops:
        for one in top:
            if one.label not in labels or labels[one.label].top is None:
                series[one.label, one.value] += one.series
    for name in names:
        for one in (labels[name].top if name in labels else None) or ():
            series[one.label, one.value] = one.series
    chosen = nsmallest(limit, series.items(), key=lambda item: (-item[1], item[0]))
    return tuple(ValueCardinality(label, value, count) for (label, value), count in chosen)
