"""A few values looked for in a long column."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows
from strandline.store.buffer.kernels.rows import find_value

FEW = 8
"""Up to so many values are compared with each of a column: quicker than a hash table, and than a mark for each series.
"""
_Number = TypeVar("_Number", bound=np.generic)


def places_of_few(column: npt.NDArray[_Number], values: npt.NDArray[_Number]) -> Rows:
    """The places at which a column has one of a few values; they rise."""
    # The system gives memory as it is filled, and mostly hardly any is.
    places = np.empty(len(column), dtype=np.int64)
    found = [places[: find_value(column, value, places)].copy() for value in np.unique(values)]
    return np.sort(np.concatenate([places[:0], *found]))
