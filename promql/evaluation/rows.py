"""Rows of vectors: dropping metric names and empty series, and conversion to points."""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s, I64s
from strandline.index.key_bytes import KeyBytes, label_order, take_keys
from strandline.promql.duplicates import merge_equal
from strandline.promql.kernels.rows import compact, count_cells
from strandline.promql.labels import check_distinct, without_name
from strandline.promql.values import F64Matrix, Grid, Vector


@dataclass(frozen=True, slots=True)
class Points:
    """Series, each with at least one point: those of series i are `first_point[i]` up to, not including,
    `first_point[i + 1]`.
    """

    keys: KeyBytes
    first_point: I64s
    time: I64s
    value: F64s

    def __len__(self) -> int:
        return len(self.keys)


def without_names(vector: Vector, *, may_merge: bool = True) -> Vector:
    """The vector without metric names. Series whose label sets become equal are merged if no step has samples of both.

    Raises `EvaluationError` if a step has, or without `may_merge`.
    """
    if not may_merge:
        vector = with_samples(vector)
    keys = without_name(vector.keys)
    if not may_merge:
        check_distinct(keys)
        return Vector(keys, vector.values)
    return merge_equal(keys, vector.values)


def with_samples(vector: Vector) -> Vector:
    """The vector without the series that have no sample at any step."""
    rows = np.flatnonzero(sample_counts(vector.values))
    if len(rows) == len(vector.keys):
        return vector
    return Vector(take_keys(vector.keys, rows), vector.values[rows])


def points(vector: Vector, grid: Grid, *, in_label_order: bool) -> Points:
    """The samples of a vector as points. Series without a sample are dropped."""
    counts = sample_counts(vector.values)
    rows = np.flatnonzero(counts)
    keys = vector.keys if len(rows) == len(vector.keys) else take_keys(vector.keys, rows)
    if in_label_order:
        order = label_order(keys)
        keys, rows = take_keys(keys, order), rows[order]
    first = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(counts[rows], out=first[1:])
    time, bits = np.empty(int(first[-1]), dtype=np.int64), np.empty(int(first[-1]), dtype=np.uint64)
    compact(np.ascontiguousarray(vector.values).view(np.uint64), rows, grid.start, grid.step, time, bits)
    return Points(keys, first, time, bits.view(np.float64))


def sample_counts(values: F64Matrix) -> I64s:
    """The number of samples in each row."""
    counts = np.empty(len(values), dtype=np.int64)
    count_cells(np.ascontiguousarray(values).view(np.uint64), counts)
    return counts
