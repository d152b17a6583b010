"""`absent` and `absent_over_time`: a series where a selector has no samples."""

from collections.abc import Iterable, Mapping

import numpy as np

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import Matcher, MatchOp
from strandline.index.selectors import METRIC_NAME
from strandline.promql.arithmetic import missing
from strandline.promql.expressions import Expression, MatrixSelector, Parentheses, VectorSelector
from strandline.promql.values import NO_SAMPLE, F64Matrix, Vector


def absent(labels: Mapping[str, str], values: F64Matrix) -> Vector:
    """One series with these labels: 1 at each step where no row has a sample. For `absent_over_time`, pass the values
    of `present_over_time`.
    """
    is_present = (~missing(values)).any(axis=0)
    key = encode_part_key(labels)
    keys = KeyBytes(np.array([0, len(key)], dtype=np.int64), np.frombuffer(bytearray(key), dtype=np.uint8))
    return Vector(keys, np.where(is_present, NO_SAMPLE, 1.0).reshape(1, -1))


def absent_labels(argument: Expression) -> dict[str, str]:
    """The labels that a selector fixes: those with an equality matcher and no other matcher. Empty for other
    expressions.
    """
    match argument:
        case Parentheses(inner=inner):
            return absent_labels(inner)
        case VectorSelector(matchers=matchers) | MatrixSelector(selector=VectorSelector(matchers=matchers)):
            return _labels_of(matchers)
        case _:
            return {}


def _labels_of(matchers: Iterable[Matcher]) -> dict[str, str]:
    labels: dict[str, str] = {}
    had_equality = set()
    for matcher in matchers:
        if matcher.label == METRIC_NAME:
            continue
        if matcher.op is MatchOp.EQUAL and matcher.label not in had_equality:
            labels[matcher.label] = matcher.value
            had_equality.add(matcher.label)
        else:
            # A second equality matcher also removes the label, even with the same value, as in Prometheus.
            labels.pop(matcher.label, None)
    return labels
