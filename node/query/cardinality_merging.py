"""The cardinality of several shards as one: distinct values are counted exactly where their lists are at hand, and
estimated from samples of their hashes where they are not.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np

from strandline.index.cardinality import METRIC_NAME, LabelCardinality, ValueCardinality
from strandline.node.query.answers import CardinalityAnswer, LabelTerms, SeriesCount, TermsAnswer
from strandline.node.query.hash_samples import HashSample, distinct_share
from strandline.node.query.label_terms import SAMPLED_HASHES, text_hashes
from strandline.node.query.merging import merge_terms

Top = Sequence[ValueCardinality]
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class _OfShard:
    """A label in one shard: its figures, and its values or hashes of them."""

    figures: LabelCardinality
    values: TermsAnswer | HashSample

    def hashes(self) -> HashSample:
        if isinstance(self.values, HashSample):
            return self.values
        return HashSample(np.sort(text_hashes(self.values.data, self.values.offsets)), is_whole=True)


@dataclass(frozen=True, slots=True)
class _Label:
    """A label of all shards. `top` are its values with the most series; None if only the shards' own tops are known."""

    figures: LabelCardinality
    top: Top | None = None
    is_exact: bool = True


def merge_cardinality(
    answers: Sequence[CardinalityAnswer], limit: int, *, label: str | None = None, series: SeriesCount | None = None
) -> CardinalityAnswer:
    """Figures of all shards, none of which counts a series that another counts; tops of `limit` entries. `label` is the
    one whose values are ranked. `series` is how many there are if it could not be told which shards share.
    """
    of_shards: dict[str, list[_OfShard]] = defaultdict(list)
    for answer in answers:
        for place, figures in enumerate(answer.labels):
            of_shards[figures.name].append(_OfShard(figures, _values(answer.terms, place)))
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


def _values(terms: LabelTerms | None, place: int) -> TermsAnswer | HashSample:
    """The values of the label at a place, or hashes of them."""
    if terms is None:
        return HashSample(np.zeros(0, dtype=np.uint64), is_whole=False)
    first, behind = terms.first_term[place : place + 2].tolist()
    if first == behind:
        hashes = terms.hashes[slice(*terms.first_hash[place : place + 2].tolist())]
        return HashSample(hashes, is_whole=len(hashes) < SAMPLED_HASHES)
    offsets = terms.offsets[first : behind + 1]
    data = terms.data[offsets[0] : offsets[-1]]
    return TermsAnswer(offsets - offsets[0], data, terms.counts[first:behind], more=False)


def _merged(name: str, of_shards: Sequence[_OfShard], limit: int) -> _Label:
    if len(of_shards) == 1:
        # What ranks in all shards ranks in this one.
        return _Label(of_shards[0].figures)
    figures = [one.figures for one in of_shards]
    series = sum(one.series for one in figures)
    lists = [one.values for one in of_shards if isinstance(one.values, TermsAnswer)]
    if len(lists) == len(of_shards):
        whole = merge_terms(lists, _NO_LIMIT)
        return _Label(LabelCardinality(name, len(whole), series, len(whole.data)), _top_of(name, whole, limit))
    share = distinct_share([one.hashes() for one in of_shards])
    values = max(round(share * sum(one.values for one in figures)), *(one.values for one in figures))
    size = max(round(share * sum(one.value_bytes for one in figures)), *(one.value_bytes for one in figures))
    return _Label(LabelCardinality(name, values, series, size), is_exact=False)


def _top_of(name: str, terms: TermsAnswer, limit: int) -> Top:
    # Stable: of equal ones the lower stay first.
    chosen = np.argsort(-terms.counts, kind="stable")[:limit]
    return [
        ValueCardinality(name, terms.data[terms.offsets[at] : terms.offsets[at + 1]].tobytes().decode(), series)
        for at, series in zip(chosen.tolist(), terms.counts[chosen].tolist(), strict=True)
    ]


def _top(
    tops: Iterable[Top], names: Iterable[str], labels: Mapping[str, _Label], limit: int
) -> tuple[ValueCardinality, ...]:
    """The top of labels with these names: from their merged values, or else from the shards' tops."""
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
