"""Columns of a record batch as arrays: times in milliseconds, values, strings, and which rows are invalid."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strandline.arrays import Bools, F64s, I64s

_UNITS_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_INT64_END = 2.0**63


@dataclass(frozen=True, slots=True)
class Texts:
    """The strings of an Arrow array: string i is `data[offsets[i] : offsets[i + 1]]`, where `data` is an address.
    `array` keeps the memory alive.
    """

    array: pa.Array
    offsets: npt.NDArray[Any]
    data: int

    @classmethod
    def of(cls, array: pa.Array) -> "Texts":
        """From a column of strings. Null becomes empty."""
        if array.null_count:
            array = pc.fill_null(array, "")
        _, offsets, data = array.buffers()
        kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
        # An empty column may have no offsets.
        found = np.zeros(1, dtype=kind) if offsets is None or not len(array) else np.frombuffer(offsets, dtype=kind)
        found = found[array.offset : array.offset + len(array) + 1]
        return cls(array, found, 0 if data is None else data.address)

    def spans(self, indices: I64s) -> tuple[I64s, I64s]:
        """The addresses and lengths of the strings at these indices."""
        starts = self.offsets[indices].astype(np.int64)
        return self.data + starts, self.offsets[indices + 1] - starts


def nulls_of(column: pa.Array) -> Bools:
    """Which rows are null."""
    if not column.null_count:
        return np.zeros(len(column), dtype=np.bool_)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def values_of(column: pa.Array) -> F64s:
    """Values as doubles; the bits of doubles do not change. Null becomes 0."""
    found = _without_nulls(column)
    return np.asarray(found.astype(np.float64, copy=False))


def times_of(column: pa.Array, unit: str | None) -> tuple[I64s, Bools]:
    """Times in milliseconds, and which of them are out of range. Integers and timestamps are rounded down to a
    millisecond; floating-point numbers are rounded to the nearest one, because they are rarely exact.
    """
    if pa.types.is_timestamp(column.type):
        unit = column.type.unit
        column = column.cast(pa.int64())
    found = _without_nulls(column)
    scale = _UNITS_PER_SECOND[str(unit)]
    if found.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            rounded = np.rint(found.astype(np.float64) * (1000 / scale))
        outside = ~(np.abs(rounded) < _INT64_END)
        return np.where(outside, 0, rounded).astype(np.int64), outside
    outside = np.zeros(len(found), dtype=np.bool_)
    if found.dtype == np.uint64:
        outside = found >= np.uint64(1 << 63)
    times = found.astype(np.int64)
    if scale > 1000:
        return times // (scale // 1000), outside
    if scale < 1000:
        factor = 1000 // scale
        max_time = ((1 << 63) - 1) // factor
        outside |= (times > max_time) | (times < -max_time)
        return np.where(outside, 0, times) * factor, outside
    return times, outside


def _without_nulls(column: pa.Array) -> npt.NDArray[Any]:
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(0, column.type))
    return np.asarray(column.to_numpy(zero_copy_only=False))
