"""Hashes of texts."""

from numba import njit

from strandline.kernels.xxh3 import hash_at


@njit(cache=True, nogil=True)
def hash_texts(data, offsets, out):
    """The low word of the hash of each text `data[offsets[i] : offsets[i + 1]]`."""
    base = data.ctypes.data
    for text in range(len(offsets) - 1):
        out[text], _ = hash_at(base + offsets[text], offsets[text + 1] - offsets[text])
