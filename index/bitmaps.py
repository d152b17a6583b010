"""Bitmaps of part ids to and from columns."""

from array import array

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap


def to_bitmap(part_ids: npt.NDArray[np.uint32]) -> BitMap:
    """A bitmap of part ids, which may repeat and stand in any order."""
    # From an `array` pyroaring copies a whole buffer; from anything else it takes one Python number at a time.
    return BitMap(array("I", np.ascontiguousarray(part_ids, dtype=np.uint32).tobytes()))


def to_ids(bitmap: BitMap) -> npt.NDArray[np.uint32]:
    """The part ids of a bitmap, rising."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32)
