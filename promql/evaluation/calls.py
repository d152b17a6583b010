"""Functions over complete vectors, by their PromQL names: labels, sorting, classic histograms, and conversions between
scalars and vectors.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from strandline.arrays import F64s, Rows
from strandline.index.key_bytes import take_keys
from strandline.promql import annotations, conversions
from strandline.promql.absence import absent
from strandline.promql.annotations import NONE, Annotations
from strandline.promql.arithmetic import missing
from strandline.promql.classic_histograms import histogram_fraction, histogram_quantile
from strandline.promql.duplicates import merge_equal
from strandline.promql.go_text import as_utf8
from strandline.promql.label_replacement import label_replace
from strandline.promql.labels import label_join
from strandline.promql.plan.nodes import Call
from strandline.promql.values import Scalar, Text, Value, Vector

Arguments = tuple[Value, ...]
AnnotatedValue = tuple[Value, Annotations]


def as_vector(value: Value) -> Vector:
    """The value as a vector. The type check guarantees its type."""
    if not isinstance(value, Vector):
        raise TypeError(f"a {type(value).__name__} where a Vector was expected")
    return value


def as_scalar(value: Value) -> F64s:
    """The values of a scalar."""
    if not isinstance(value, Scalar):
        raise TypeError(f"a {type(value).__name__} where a Scalar was expected")
    return value.values


def _text(value: Value) -> str:
    if not isinstance(value, Text):
        raise TypeError(f"a {type(value).__name__} where a Text was expected")
    return value.value


def _absent(node: Call, arguments: Arguments) -> AnnotatedValue:
    return absent(dict(node.absent_labels), as_vector(arguments[0]).values), NONE


def _histogram_quantile(node: Call, arguments: Arguments) -> AnnotatedValue:
    quantiles, buckets, spans = as_scalar(arguments[0]), as_vector(arguments[1]), node.argument_spans
    return histogram_quantile(quantiles, buckets, node.grid, quantile_span=spans[0], bucket_span=spans[1])


def _histogram_fraction(node: Call, arguments: Arguments) -> AnnotatedValue:
    lower, upper = as_scalar(arguments[0]), as_scalar(arguments[1])
    return histogram_fraction(lower, upper, as_vector(arguments[2]), bucket_span=node.argument_spans[2])


def _label_replace(_node: Call, arguments: Arguments) -> AnnotatedValue:
    vector, target = as_vector(arguments[0]), _text(arguments[1])
    # A target that is not UTF-8 is an error. In the other arguments, such bytes are replaced as in answers.
    replacement, source, expression = (as_utf8(_text(one)) for one in arguments[2:])
    return merge_equal(label_replace(vector.keys, target, replacement, source, expression), vector.values), NONE


def _label_join(_node: Call, arguments: Arguments) -> AnnotatedValue:
    vector = as_vector(arguments[0])
    target, separator, *sources = map(_text, arguments[1:])
    return merge_equal(label_join(vector.keys, target, as_utf8(separator), sources), vector.values), NONE


def _pi(node: Call, _arguments: Arguments) -> AnnotatedValue:
    return conversions.constant(float(np.pi), node.grid), NONE


def _scalar(_node: Call, arguments: Arguments) -> AnnotatedValue:
    return conversions.scalar(as_vector(arguments[0])), NONE


def sorted_rows(values: F64s, *, is_descending: bool = False) -> Rows:
    """The rows that have a sample, in the order of their values at one step. NaN is last in both directions. The sort
    is stable.
    """
    rows = np.flatnonzero(~missing(values))
    found = values[rows]
    # numpy sorts NaN last.
    return rows[np.argsort(-found if is_descending else found, stable=True)]


def _sort(node: Call, arguments: Arguments) -> AnnotatedValue:
    vector = as_vector(arguments[0])
    if node.grid.count > 1:
        return vector, Annotations((annotations.sort_in_range_query(node.span),))
    if not node.grid.count:
        # A subquery whose range contains none of its steps.
        return vector, NONE
    rows = sorted_rows(vector.values[:, 0], is_descending=node.function == "sort_desc")
    return Vector(take_keys(vector.keys, rows), vector.values[rows]), NONE


def _vector(_node: Call, arguments: Arguments) -> AnnotatedValue:
    return conversions.vector(Scalar(as_scalar(arguments[0]))), NONE


CALLS: Final[Mapping[str, Callable[[Call, Arguments], AnnotatedValue]]] = MappingProxyType(
    {
        "absent": _absent,
        "histogram_fraction": _histogram_fraction,
        "histogram_quantile": _histogram_quantile,
        "label_join": _label_join,
        "label_replace": _label_replace,
        "pi": _pi,
        "scalar": _scalar,
        "sort": _sort,
        "sort_desc": _sort,
        "vector": _vector,
    }
)
