"""A handful of series by their labels: from their keys, and into what was asked of them.

Texts compare as their bytes do: UTF-8 keeps the order of code points.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import I64s
from strandline.index.documents import FewKeys, decode_part_key, encode_part_key
from strandline.node.query.answers import Bytes, FewLabels, KeyBytes, SeriesAnswer, TermsAnswer

Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class FewFound:
    """What a look-up found in a handful of series: label sets, names or values, each once and in order."""

    found: list[Labels] | list[str]
    series: int
    more: bool
    warnings: tuple[str, ...]


def labels_of(few: FewKeys) -> list[Labels] | None:
    """The labels of each key; None if they are not text."""
    try:
        return [decode_part_key(part_key) for part_key in few.part_keys()]
    except UnicodeDecodeError:
        return None


def series_of(answers: Sequence[FewLabels], limit: int) -> FewFound:
    """Every series once, at most so many, in the order of their labels."""
    series = _merged(answers)
    if len(series) > 1:
        series.sort(key=lambda labels: list(labels.items()))
    return FewFound(series[:limit], len(series), len(series) > limit, _warnings(answers))


def names_of(answers: Sequence[FewLabels], limit: int) -> FewFound:
    """The names of the labels that they have."""
    return _terms(answers, limit, {name for answer in answers for labels in answer.series for name in labels})


def values_of(answers: Sequence[FewLabels], label: str, limit: int) -> FewFound:
    """The values that a label has in them."""
    every = {labels[label] for answer in answers for labels in answer.series if label in labels}
    return _terms(answers, limit, every)


def series_columns(few: FewLabels) -> SeriesAnswer:
    """The same as other shards answer that have more."""
    series = series_of([few], len(few.series)).found
    keys = [encode_part_key(labels) for labels in series if isinstance(labels, dict)]
    return SeriesAnswer(KeyBytes(*_columns(keys)), more=False, warnings=few.warnings)


def terms_columns(few: FewLabels, label: str | None, limit: int) -> TermsAnswer:
    """The values of a label in them, or without one the names of labels, as other shards answer that have more."""
    every = (
        [name for labels in few.series for name in labels]
        if label is None
        else [labels[label] for labels in few.series if label in labels]
    )
    counts = Counter(every)
    terms = sorted(counts)[:limit]
    offsets, data = _columns([term.encode() for term in terms])
    series = np.array([counts[term] for term in terms], dtype=np.int64)
    return TermsAnswer(offsets, data, series, len(counts) > limit, few.warnings)


def _merged(answers: Sequence[FewLabels]) -> list[Labels]:
    """The series of all shards: one may lie in several."""
    some = [answer.series for answer in answers if answer.series]
    if len(some) <= 1:
        return some[0] if some else []
    return list({tuple(labels.items()): labels for series in some for labels in series}.values())


def _terms(answers: Sequence[FewLabels], limit: int, every: set[str]) -> FewFound:
    return FewFound(sorted(every)[:limit], 0, len(every) > limit, _warnings(answers))


def _warnings(answers: Sequence[FewLabels]) -> tuple[str, ...]:
    return tuple([warning for answer in answers for warning in answer.warnings])


def _columns(texts: Iterable[bytes]) -> tuple[I64s, Bytes]:
    listed = list(texts)
    offsets = np.cumsum([0, *map(len, listed)], dtype=np.int64)
    return offsets, np.frombuffer(b"".join(listed), dtype=np.uint8)
