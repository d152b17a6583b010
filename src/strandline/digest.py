"""The hash of whole files and rows, to tell whether they are what was written."""

import numpy as np
import numpy.typing as npt

from strandline.kernels.xxh3 import hash_128


def digest(data: bytes | npt.NDArray[np.uint8]) -> int:
    """XXH3 of some bytes, as one number of 128 bits."""
    low, high = hash_128(np.frombuffer(data, dtype=np.uint8), 0, len(data))
    return int(high) << 64 | int(low)
