"""What evaluation works on: grids of steps, samples as they were read, and matrices of series by steps.

In a matrix "no sample" is a quiet NaN with a payload of our own, told by its bits: an ordinary NaN is a value, and the
stale marker is a signalling NaN, which arithmetic would change. Arithmetic on "no sample" need not keep the payload, so
whoever computes puts `NO_SAMPLE` back where an operand had none.
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
"""What every other NaN becomes when it is read: a client may have sent the bits of `NO_SAMPLE_BITS`."""
NO_SAMPLE: Final = np.uint64(NO_SAMPLE_BITS).view(np.float64)
STALE: Final = np.uint64(STALE_BITS).view(np.float64)
_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Grid:
    """Moments in milliseconds: `count` of them, `step` apart, from `start` on."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        """The last one."""
        return self.start + (self.count - 1) * self.step

    def timestamps(self) -> I64s:
        """All of them."""
        return self.start + self.step * np.arange(self.count, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of series: series i has those from `first_sample[i]` up to, not including, `first_sample[i + 1]`, at
    rising times, no time twice. NaNs are `NAN_BITS` or stale markers.
    """

    keys: KeyBytes
    first_sample: I64s
    time: I64s
    value: F64s


@dataclass(frozen=True, slots=True)
class Vector:
    """An instant vector at each step of a grid: `values[i, j]` is series i at step j, or `NO_SAMPLE`. No key is there
    twice. Series that have no sample at any step may be in it until the answer is written.
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
    """A view that is contiguous, aligned and read-only. Kernels are compiled anew for each kind of array, so they are
    called with this one, whatever the array was cut from.
    """
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


def bits_for_reading(values: F64Matrix) -> npt.NDArray[np.uint64]:
    """The same, as words: "no sample" is told by its bits."""
    return for_reading(np.require(values, requirements=["C", "A"]).view(np.uint64))
