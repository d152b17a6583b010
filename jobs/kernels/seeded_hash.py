"""A hash of part keys that depends on a seed."""

import numpy as np
from numba import njit

from strandline.kernels.xxh3 import hash_at

SEEDED_KEY_BYTES = 24


@njit(cache=True, nogil=True)
def hash_keys(seed, key_low, key_high, hashes):
    """The low word of 128-bit XXH3 over the seed and the two words of each key, in little-endian order."""
    words = np.empty(3, dtype=np.uint64)
    address = np.int64(words.ctypes.data)
    words[0] = seed
    for row in range(len(key_low)):
        words[1], words[2] = key_low[row], key_high[row]
        hashes[row], _ = hash_at(address, SEEDED_KEY_BYTES)
