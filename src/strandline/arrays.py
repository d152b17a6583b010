"""Types of the numpy arrays that columns consist of, and conversion between lengths and offsets of consecutive runs."""

from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
F64s = npt.NDArray[np.float64]
I64s = npt.NDArray[np.int64]
U32s = npt.NDArray[np.uint32]
U64s = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]  # Indices into other arrays.


def run_lengths(offsets: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The lengths of consecutive runs that start at these offsets. The last offset is the end of the last run.

    The same as `np.diff`, but 3 microseconds faster, which matters because there are often only a few runs.
    """
    lengths: npt.NDArray[Any] = offsets[1:] - offsets[:-1]
    return lengths


def run_offsets(lengths: npt.NDArray[Any]) -> I64s:
    """The offsets at which consecutive runs of these lengths start, followed by the end of the last run."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    lengths.cumsum(out=offsets[1:])
    return offsets
