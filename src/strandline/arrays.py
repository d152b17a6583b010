"""Names for the arrays that columns are made of, as types; and the lengths of runs that lie one behind the other."""

from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
F64s = npt.NDArray[np.float64]
I64s = npt.NDArray[np.int64]
U32s = npt.NDArray[np.uint32]
U64s = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]  # Places in other arrays.


def run_lengths(first: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The lengths of runs that begin at these places, the last of which is the end of all.

    As `np.diff`, which takes three microseconds more: the runs are often few.
    """
    lengths: npt.NDArray[Any] = first[1:] - first[:-1]
    return lengths


def run_offsets(lengths: npt.NDArray[Any]) -> I64s:
    """Where runs of these lengths begin, and behind them where the last ends."""
    places = np.zeros(len(lengths) + 1, dtype=np.int64)
    lengths.cumsum(out=places[1:])
    return places
