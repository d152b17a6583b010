"""Conversions between scalars and vectors: `time`, `vector` and `scalar`."""

import numpy as np

from strandline.arrays import F64s
from strandline.index.key_bytes import KeyBytes
from strandline.promql.arithmetic import missing
from strandline.promql.values import NAN_BITS, Grid, Scalar, Vector


def constant(value: float, grid: Grid) -> Scalar:
    """The same number at each step: a literal, or `pi()`."""
    return Scalar(np.full(grid.count, value))


def time(grid: Grid) -> Scalar:
    """The evaluation timestamp of each step, in seconds."""
    return Scalar(grid.timestamps() / 1000)


def vector(scalar: Scalar) -> Vector:
    """One series, without labels."""
    return Vector(without_labels(), scalar.values.reshape(1, -1))


def scalar(vector: Vector) -> Scalar:
    """The value of the only series that has a sample at a step; NaN where none or several have one."""
    steps = vector.values.shape[1]
    out: F64s = np.full(steps, NAN_BITS, dtype=np.uint64).view(np.float64)
    if len(vector.values):
        present = ~missing(vector.values)
        alone = np.flatnonzero(present.sum(axis=0) == 1)
        out[alone] = vector.values[present.argmax(axis=0)[alone], alone]
    return Scalar(out)


def without_labels() -> KeyBytes:
    """One key that has no labels."""
    return KeyBytes(np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.uint8))
