"""`sort` and `sort_desc`. Answers of range queries are in the order of their labels, whatever an expression sorts."""

import numpy as np

from strandline.arrays import F64s, Rows
from strandline.promql.arithmetic import missing


def sorted_rows(values: F64s, *, is_descending: bool = False) -> Rows:
    """The rows that have a sample, by their values at one step. NaN is last, whichever way; of equal values the one
    that was first stays first.
    """
    rows = np.flatnonzero(~missing(values))
    found = values[rows]
    # numpy has NaN last.
    return rows[np.argsort(-found if is_descending else found, stable=True)]
