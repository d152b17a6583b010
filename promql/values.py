"""The values of an evaluation: grids of steps, samples as they were read, and matrices of series by steps.

In a matrix, "no sample" is a quiet NaN with its own payload. It is recognised by its bits, because an ordinary NaN is a
value, and the staleness marker is a signalling NaN, which arithmetic would change. Arithmetic need not preserve the
payload, so each operation writes `NO_SAMPLE` again where an operand has no sample.
"""

from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from strandline.arrays import F64s, I64s
from strandline.index.key_bytes import KeyBytes

F64Matrix = npt.NDArray[np.float64]
"""Two axes: series and steps, C order."""
NO_SAMPLE_BITS: Final = 0x7FF8_5374_7261_6E64
STALE_BITS: Final = 0x7FF0_0000_0000_0002
NAN_BITS: Final = 0x7FF8_0000_0000_0001
"""Every NaN except the staleness marker becomes this one when it is read: a client may have sent `NO_SAMPLE_BITS`."""
NO_SAMPLE: Final = np.uint64(NO_SAMPLE_BITS).view(np.float64)
STALE: Final = np.uint64(STALE_BITS).view(np.float64)
_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Grid:
    """`count` timestamps in milliseconds from `start` on, `step` apart."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        """The last timestamp."""
        return self.start + (self.count - 1) * self.step

    def timestamps(self) -> I64s:
        """All timestamps."""
        return self.start + self.step * np.arange(self.count, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of series: series i has the samples from `first_sample[i]` up to, not including, `first_sample[i + 1]`.
    Their times are strictly increasing. Each NaN is `NAN_BITS` or a staleness marker.
    """

    keys: KeyBytes
    first_sample: I64s
    time: I64s
    value: F64s


@dataclass(frozen=True, slots=True)
class Vector:
    """An instant vector at each step of a grid: `values[i, j]` is series i at step j, or `NO_SAMPLE`. Keys are
    distinct. Series without any sample may remain in it until the answer is written.
    """

    keys: KeyBytes
    values: F64Matrix


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number at each step."""

    values: F64s


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    value: str


Value = Vector | Scalar | Text


def for_reading(array: npt.NDArray[_Kind]) -> npt.NDArray[_Kind]:
    """A contiguous, aligned and read-only array with the same content. numba compiles a kernel once for each layout of
    its arguments; with this one layout, it compiles each kernel only once.
    """
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


def bits_for_reading(values: F64Matrix) -> npt.NDArray[np.uint64]:
    """The same with the bits of the values, by which "no sample" is recognised."""
    return for_reading(np.require(values, requirements=["C", "A"]).view(np.uint64))
