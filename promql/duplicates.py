"""Rows whose label sets have become equal, for example because the metric name was dropped.

They are merged into one series. Two of them with a sample at the same step are an error.
"""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import Rows
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.promql.errors import EvaluationError
from strandline.promql.kernels.matching import first_conflict, merge_rows
from strandline.promql.labels import distinct_keys
from strandline.promql.values import NO_SAMPLE_BITS, F64Matrix, Vector, bits_for_reading

SAME_LABELS = "vector cannot contain metrics with the same labelset"


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """Rows by group: those of group g are `rows[first[g]:first[g + 1]]`, in ascending order."""

    rows: Rows
    first: Rows

    @classmethod
    def of(cls, group_of: Rows, groups: int) -> "GroupMembers":
        """Build from the group of each row."""
        first = np.zeros(groups + 1, dtype=np.int64)
        np.cumsum(np.bincount(group_of, minlength=groups), out=first[1:])
        return cls(np.argsort(group_of, stable=True), first)

    @property
    def are_single(self) -> bool:
        """Whether no group has two or more rows."""
        return len(self.rows) < 2 or bool(np.diff(self.first).max() < 2)


def merge_equal(keys: KeyBytes, values: F64Matrix) -> Vector:
    """Merge the rows that have equal keys. Raises `EvaluationError` if two of them have a sample at the same step."""
    number_of, first_of = distinct_keys(keys)
    if len(first_of) == len(keys):
        return Vector(keys, values)
    bits, every = bits_for_reading(values), np.arange(len(keys), dtype=np.int64)
    members = GroupMembers.of(number_of, len(first_of))
    all_steps = np.ones(values.shape[1], dtype=np.bool_)
    if first_conflict(members.rows, members.first, bits, every, bits, every, all_steps)[0] >= 0:
        raise EvaluationError(SAME_LABELS)
    merged = np.full((len(first_of), values.shape[1]), NO_SAMPLE_BITS, dtype=np.uint64)
    merge_rows(bits, number_of, merged)
    return Vector(take_keys(keys, first_of), merged.view(np.float64))
