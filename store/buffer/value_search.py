"""A few values looked for in a long column."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows
from strandline.store.buffer.kernels.rows import find_value

MAX_SCANNED_VALUES = 8
"""Up to so many values are compared with each of a column: quicker than a hash table, and than a mark for each series.
"""
_NO_POSITIONS = np.empty(0, dtype=np.int64)
_Number = TypeVar("_Number", bound=np.generic)


def positions_of_any(column: npt.NDArray[_Number], values: npt.NDArray[_Number]) -> Rows:
    """The places at which a column has one of a few values; they rise."""
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
    """The places at which a column has a value; they rise. `least` and `greatest` are bounds of the values in its first
    chunks of so many values each.
    """
    # The system gives memory as it is filled, and mostly hardly any is.
    places = np.empty(len(column), dtype=np.int64)
    return places[: find_value(column, value, least, greatest, chunk, places)].copy()
