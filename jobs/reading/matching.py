"""Matches part keys against a selector without an index, by columns of label values.

As in PromQL, a missing label has the empty value. Regular expressions are evaluated by RE2, once per distinct value.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strandline.arrays import I64s
from strandline.index.kernels.gather import gather_runs
from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp, matches_empty
from strandline.jobs.reading.kernels.labels import find_label

Mask = npt.NDArray[np.bool_]


def check_matchers(matchers: Sequence[Matcher]) -> None:
    """Raises `InvalidMatcher` for an invalid regular expression."""
    for matcher in matchers:
        matches_empty(matcher)
        _matched(pa.array([""]), matcher)


def match_keys(offsets: I64s, data: npt.NDArray[np.uint8], matchers: Sequence[Matcher]) -> Mask:
    """Which of the part keys `data[offsets[i]:offsets[i + 1]]` match all matchers."""
    found = np.ones(len(offsets) - 1, dtype=np.bool_)
    for matcher in matchers:
        values = _values(offsets, data, matcher.label).dictionary_encode()
        of_value = np.asarray(_matched(values.dictionary, matcher))
        found &= of_value[np.asarray(values.indices)]
    return found


def string_array(data: npt.NDArray[np.uint8], spans: npt.NDArray[np.int64]) -> pa.Array:
    """The UTF-8 texts at (begin, end) positions, as an array of strings."""
    begins, ends = np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1])
    offsets = np.zeros(len(spans) + 1, dtype=np.int64)
    np.cumsum(ends - begins, out=offsets[1:])
    gathered = np.empty(int(offsets[-1]), dtype=np.uint8)
    gather_runs(data, begins, ends, gathered)
    return pa.LargeStringArray.from_buffers(len(spans), pa.py_buffer(offsets), pa.py_buffer(gathered)).cast(pa.string())


def _values(offsets: I64s, data: npt.NDArray[np.uint8], label: str) -> pa.Array:
    spans = np.empty((len(offsets) - 1, 2), dtype=np.int64)
    find_label(data, offsets, np.frombuffer(label.encode(), dtype=np.uint8), spans)
    return string_array(data, spans)


def _matched(values: pa.Array, matcher: Matcher) -> pa.Array:
    if matcher.op in (MatchOp.EQUAL, MatchOp.NOT_EQUAL):
        matched = pc.equal(values, matcher.value)
    else:
        try:
            # Anchored at both ends, and the dot matches a line feed, as in PromQL.
            matched = pc.match_substring_regex(values, pattern=rf"\A(?s:{matcher.value})\z")
        except pa.ArrowInvalid as error:
            raise InvalidMatcher(f"{matcher}: {error}", remedy="Use the syntax of RE2") from error
    return pc.invert(matched) if matcher.is_negative else matched
