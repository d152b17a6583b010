"""Converts columns of part ids to bitmaps, and back."""

from array import array

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap


def to_bitmap(part_ids: npt.NDArray[np.uint32]) -> BitMap:
    """Make a bitmap of part ids, which may repeat and be in any order."""
    # pyroaring copies an `array` as a whole buffer; from anything else it takes one Python number at a time.
    return BitMap(array("I", np.ascontiguousarray(part_ids, dtype=np.uint32).tobytes()))


def to_ids(bitmap: BitMap) -> npt.NDArray[np.uint32]:
    """Return the part ids of a bitmap, in ascending order."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32)
