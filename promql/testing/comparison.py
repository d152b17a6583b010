"""Compares results with what a script expects. Each function returns a text, which is empty if nothing differs."""

import math
import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise

from strandline.index.documents import decode_part_key
from strandline.promql.evaluation.results import Result
from strandline.promql.go_text import plain_number, quoted
from strandline.promql.testing.commands import Evaluation, Expected, ExpectedAnnotations, Labels, SeriesLine
from strandline.promql.value_types import ValueType
from strandline.promql.values import STALE_BITS

TOLERANCE = 0.000001
"""Relative to the sum of both values, as in Prometheus."""

_MIN_NORMAL = 2.2250738585072014e-308
_MAX_FLOAT = 1.7976931348623157e308
_MAX_SHOWN_POINTS = 5

LabelKey = tuple[tuple[str, str], ...]
Points = Sequence[tuple[int, float]]


def difference(evaluation: Evaluation, result: Result) -> str:
    """The difference between the value of a result and the expected one."""
    expected = evaluation.expected
    match result.kind:
        case ValueType.STRING:
            wanted = expected.string or ""
            return "" if wanted == result.text else f"expected the string {quoted(wanted)}, got {quoted(result.text)}"
        case ValueType.SCALAR:
            return _scalar_difference(expected, result.number)
    if expected.string is not None:
        return f"expected the string {quoted(expected.string)}, got {_shown_kind(result)}"
    if expected.scalar is not None:
        return f"expected the scalar {_shown(expected.scalar)}, got {_shown_kind(result)}"
    found = series_of(result)
    if result.kind is ValueType.MATRIX:
        return _matrix_difference(evaluation, found)
    return vector_difference(expected, found)


def vector_difference(expected: Expected, found: Sequence[tuple[LabelKey, Points]]) -> str:
    """The difference between the expected series and those of an instant vector, which have one point each."""
    wanted = {_key(one.labels): one for one in expected.series}
    if why := _series_difference(wanted, found):
        return why
    for position, (key, points) in enumerate(found):
        value = wanted[key].values[0]
        if expected.is_ordered and _key(expected.series[position].labels) != key:
            wanted_labels = shown_labels(expected.series[position].labels)
            return f"expected {wanted_labels} at position {position + 1}, got {_shown_key(key)}"
        if value is None or not is_close(value, points[0][1]):
            return f"expected {_shown(value)} for {_shown_key(key)}, got {_shown(points[0][1])}"
    return ""


def _matrix_difference(evaluation: Evaluation, found: Sequence[tuple[LabelKey, Points]]) -> str:
    expected, timestamps = evaluation.expected, evaluation.points
    if expected.is_ordered:
        return "expect ordered has no effect: the series of a range query are always in the order of their labels"
    if timestamps is None:
        return "got a range vector; write expect range vector if this is expected"
    if any(one > other for (one, _), (other, _) in pairwise(found)):
        return "the series are not in the order of their labels"
    wanted = {_key(one.labels): one for one in expected.series}
    if why := _series_difference(wanted, found):
        return why
    faults = ((key, _values_difference(timestamps, wanted[key].values, points)) for key, points in found)
    return next((f"{_shown_key(key)}: {why}" for key, why in faults if why), "")


def _values_difference(timestamps: range, values: Sequence[float | None], found: Points) -> str:
    if len(values) > len(timestamps):
        return f"expected {len(values)} values, but there are only {len(timestamps)} steps"
    wanted = [(time, value) for time, value in zip(timestamps, values, strict=False) if value is not None]
    return _points_difference(wanted, found)


def _series_difference(wanted: Mapping[LabelKey, SeriesLine], found: Sequence[tuple[LabelKey, Points]]) -> str:
    for key, points in found:
        if key not in wanted:
            return f"unexpected series {_shown_key(key)} with {_shown_points(points)}"
    there = {key for key, _ in found}
    missing = [one for key, one in wanted.items() if key not in there]
    return f"expected series {shown_labels(missing[0].labels)} is missing" if missing else ""


def _points_difference(wanted: Points, found: Points) -> str:
    if [time for time, _ in wanted] != [time for time, _ in found]:
        return f"expected {_shown_points(wanted)}, got {_shown_points(found)}"
    for (time, value), (_, other) in zip(wanted, found, strict=True):
        if not is_close(value, other):
            return f"expected {_shown(value)} at {time / 1000:g}s, got {_shown(other)}"
    return ""


def _scalar_difference(expected: Expected, number: float) -> str:
    if expected.scalar is None:
        return f"expected a vector, got the scalar {_shown(number)}"
    same = is_close(expected.scalar, number)
    return "" if same else f"expected the scalar {_shown(expected.scalar)}, got {_shown(number)}"


def annotation_difference(expected: ExpectedAnnotations, found: Sequence[str], what: str) -> str:
    """The difference between the expected and the actual annotations of one level, whose name is `what`."""
    if expected.none:
        return f"unexpected {what}: {found[0]}" if found else ""
    if not expected.texts:
        return ""
    for text in expected.texts:
        if not any(map(text.matches, found)):
            return f"expected {what} {text}, got {'; '.join(found) or 'none'}"
    for one in found:
        if not any(text.matches(one) for text in expected.texts):
            return f"unexpected {what}: {one}"
    return ""


def series_of(result: Result) -> list[tuple[LabelKey, Points]]:
    """The series of a result, in order, with their points."""
    points = result.points
    if points is None:
        return []
    times, values, first = points.time.tolist(), points.value.tolist(), points.first_point.tolist()
    return [
        (_key(decode_part_key(points.keys.key(position))), list(zip(times[begin:end], values[begin:end], strict=True)))
        for position, (begin, end) in enumerate(pairwise(first))
    ]


def is_close(one: float, other: float) -> bool:
    """Prometheus' comparison: relative; NaN equals NaN, and a staleness marker only equals another one."""
    if _is_stale(one) or _is_stale(other):
        return _is_stale(one) and _is_stale(other)
    if one == other or (math.isnan(one) and math.isnan(other)):
        return True
    total, apart = abs(one) + abs(other), abs(one - other)
    if one == 0 or other == 0 or total < _MIN_NORMAL:
        return apart < TOLERANCE * _MIN_NORMAL
    return apart / min(total, _MAX_FLOAT) < TOLERANCE


def shown_labels(labels: Labels) -> str:
    """A label set in the notation of scripts."""
    rest = ", ".join(f"{label}={quoted(value)}" for label, value in sorted(labels.items()) if label != "__name__")
    name = labels.get("__name__", "")
    return f"{name}{{{rest}}}" if rest or not name else name


def _is_stale(value: float) -> bool:
    return value != value and struct.unpack("<Q", struct.pack("<d", value))[0] == STALE_BITS  # noqa: PLR0124 - NaN


def _key(labels: Labels) -> LabelKey:
    return tuple(sorted(labels.items()))


def _shown_key(key: LabelKey) -> str:
    return shown_labels(dict(key))


def _shown_kind(result: Result) -> str:
    return f"{'an' if result.kind is ValueType.VECTOR else 'a'} {result.kind.display_name}"


def _shown_points(points: Points) -> str:
    shown = " ".join(f"{_shown(value)}@{time / 1000:g}s" for time, value in points[:_MAX_SHOWN_POINTS])
    more = f" and {len(points) - _MAX_SHOWN_POINTS} more" if len(points) > _MAX_SHOWN_POINTS else ""
    return (shown + more) or "no points"


def _shown(value: float | None) -> str:
    if value is None:
        return "no value"
    return "stale" if _is_stale(value) else plain_number(value)
