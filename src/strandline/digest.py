"""The checksum of stored files and rows, by which readers detect that they differ from what was written."""

import numpy as np
import numpy.typing as npt

from strandline.kernels.xxh3 import hash_128


def digest(data: bytes | npt.NDArray[np.uint8]) -> int:
    """The XXH3 hash of `data` as one 128-bit number."""
    low, high = hash_128(np.frombuffer(data, dtype=np.uint8), 0, len(data))
    return int(high) << 64 | int(low)
