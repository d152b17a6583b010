"""`histogram_quantile` and `histogram_fraction` of classic histograms, whose buckets are series with a label `le`."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from strandline.arrays import F64s, I64s, Rows
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.promql.annotations import (
    Annotation,
    Annotations,
    ForcedMonotonicity,
    bad_bucket_label,
    forced_monotonicity,
    invalid_quantile,
)
from strandline.promql.arithmetic import missing
from strandline.promql.duplicates import merge_equal
from strandline.promql.expressions import Span
from strandline.promql.kernels.buckets import fraction_rows, quantile_rows
from strandline.promql.labels import GroupTable, distinct_texts, label_values, without_name
from strandline.promql.values import F64Matrix, Grid, Vector, bits_for_reading, for_reading

U64Matrix = npt.NDArray[np.uint64]
BUCKET_LABEL: Final = "le"
_DIGITS: Final = "[0-9](?:_?[0-9])*"
_HEX_DIGITS: Final = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL: Final = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?")
_HEXADECIMAL: Final = re.compile(
    rf"[+-]?0[xX]_?(?:{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS}"
)
_NOT_FINITE: Final = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)


def histogram_quantile(
    quantiles: F64s,
    buckets: Vector,
    grid: Grid,
    *,
    quantile_span: Span | None = None,
    bucket_span: Span | None = None,
) -> tuple[Vector, Annotations]:
    """The quantile of each histogram. `quantiles` has one value for each step."""
    histograms = _histograms(buckets)
    values = np.empty((len(histograms.keys), grid.count), dtype=np.float64)
    figures = np.array([np.inf, -np.inf, 0.0])
    forced_steps = np.zeros(grid.count, dtype=np.int64)
    quantile_rows(*_columns(buckets.values, histograms), for_reading(quantiles), values, figures, forced_steps)
    invalid = np.unique(quantiles[np.isnan(quantiles) | (quantiles < 0) | (quantiles > 1)])
    annotations = [invalid_quantile(float(quantile), quantile_span) for quantile in invalid]
    annotations += _malformed(histograms, bucket_span)
    if forced_steps.any():
        annotations.append(forced_monotonicity(_forced(forced_steps, figures, grid), span=bucket_span))
    return merge_equal(without_name(histograms.keys), values), Annotations(annotations)


def histogram_fraction(
    lower: F64s, upper: F64s, buckets: Vector, *, bucket_span: Span | None = None
) -> tuple[Vector, Annotations]:
    """The fraction of each histogram's observations between two bounds. `lower` and `upper` have one value for each
    step.
    """
    histograms = _histograms(buckets)
    values = np.empty((len(histograms.keys), buckets.values.shape[1]), dtype=np.float64)
    fraction_rows(*_columns(buckets.values, histograms), for_reading(lower), for_reading(upper), values)
    return merge_equal(without_name(histograms.keys), values), Annotations(_malformed(histograms, bucket_span))


def parse_bound(text: str) -> float | None:
    """The bound of a bucket, parsed as Go parses numbers. None if Go rejects it, for example if it is too large."""
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    digits = text.replace("_", "")
    if _DECIMAL.fullmatch(text):
        bound = float(digits)
    elif _HEXADECIMAL.fullmatch(text):
        try:
            bound = float.fromhex(digits)
        except OverflowError:
            return None
    else:
        return None
    return None if np.isinf(bound) else bound


@dataclass(frozen=True, slots=True)
class _Histograms:
    """Buckets by histogram: those of histogram h are the series `rows[first[h]:first[h + 1]]`, by ascending bounds.
    `keys` are the labels without `le`, including the metric name. `malformed` are values of `le` that are not numbers.
    """

    keys: KeyBytes
    rows: Rows
    bounds: F64s
    first: I64s
    malformed: tuple[str, ...]


def _histograms(buckets: Vector) -> _Histograms:
    texts = label_values(buckets.keys, BUCKET_LABEL)
    number_of, first_of = distinct_texts(texts)
    names = [texts.text(position).decode() for position in first_of.tolist()]
    parsed = [parse_bound(name) for name in names]
    is_sound = np.array([bound is not None for bound in parsed], dtype=np.bool_)[number_of]
    rows = np.flatnonzero(is_sound)
    malformed: tuple[str, ...] = ()
    if len(rows) < len(number_of):
        # Only series that have a sample cause a warning.
        others = np.flatnonzero(~is_sound)
        seen = others[~missing(buckets.values[others]).all(axis=1)]
        malformed = tuple(names[number] for number in np.unique(number_of[seen]).tolist())
    table = GroupTable((BUCKET_LABEL,), is_without=True)
    group_of = table.add(buckets.keys if len(rows) == len(number_of) else take_keys(buckets.keys, rows))
    bounds = np.array([np.nan if bound is None else bound for bound in parsed], dtype=np.float64)[number_of[rows]]
    order = np.lexsort((bounds, group_of))
    first = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(np.bincount(group_of, minlength=len(table)), out=first[1:])
    return _Histograms(table.keys, rows[order], bounds[order], first, malformed)


def _columns(values: F64Matrix, histograms: _Histograms) -> tuple[U64Matrix, F64Matrix, Rows, F64s, I64s]:
    return bits_for_reading(values), for_reading(values), histograms.rows, histograms.bounds, histograms.first


def _malformed(histograms: _Histograms, span: Span | None) -> list[Annotation]:
    return [bad_bucket_label(text, span=span) for text in histograms.malformed]


def _forced(forced_steps: I64s, figures: F64s, grid: Grid) -> ForcedMonotonicity:
    times = grid.timestamps()[forced_steps > 0]
    least, greatest, difference = figures.tolist()
    return ForcedMonotonicity(int(times[0]), int(times[-1]), least, greatest, difference, count=int(forced_steps.sum()))
