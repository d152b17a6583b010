"""Finds a few values in a long column by scanning it."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows
from strandline.store.buffer.kernels.rows import find_value

MAX_SCANNED_VALUES = 8
"""Up to this many values are compared with each of a column's: faster than a hash table, or than a flag per series."""
_NO_POSITIONS = np.empty(0, dtype=np.int64)
_Number = TypeVar("_Number", bound=np.generic)


def positions_of_any(column: npt.NDArray[_Number], values: npt.NDArray[_Number]) -> Rows:
    """Return the positions at which a column has one of a few values, in ascending order."""
    no_bounds = column[:0]
    found = [positions_of(column, value, no_bounds, no_bounds, 0) for value in np.unique(values)]
    return found[0] if len(found) == 1 else np.sort(np.concatenate([_NO_POSITIONS, *found]))


def positions_of(
    column: npt.NDArray[_Number],
    value: _Number,
    least: npt.NDArray[_Number],
    greatest: npt.NDArray[_Number],
    chunk: int,
) -> Rows:
    """Return the positions at which a column has a value, in ascending order. `least` and `greatest` are bounds of the
    values in the column's first chunks, which have `chunk` values each.
    """
    # The kernel allocates memory when it is written, and usually little is.
    positions = np.empty(len(column), dtype=np.int64)
    return positions[: find_value(column, value, least, greatest, chunk, positions)].copy()
