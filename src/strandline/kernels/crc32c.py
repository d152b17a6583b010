"""CRC-32C (Castagnoli), computed with the slicing-by-8 algorithm: eight bytes in each step.

Table n has the contribution of a byte that is followed by n more bytes of its step. The eight lookups of a step are
independent of each other. The tables are computed from the polynomial when this module is loaded.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, load_u64

U64 = np.uint64
POLYNOMIAL = 0x82F63B78  # Reflected, because the lowest bit of a byte is processed first.
ALL_BITS = U64(0xFFFFFFFF)


def _tables():
    tables = np.zeros((8, 256), dtype=np.uint64)
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = (rest >> 1) ^ (POLYNOMIAL if rest & 1 else 0)
        tables[0, byte] = rest
    for following in range(1, 8):
        before = tables[following - 1]
        tables[following] = (before >> U64(8)) ^ tables[0][(before & U64(0xFF)).astype(np.intp)]
    return tables


TABLES = _tables()


@njit(cache=True)
def crc32c_continued(checksum, at, length):
    """Continue `checksum` with `length` bytes at an address. The checksum of zero bytes is 0."""
    end = at + length
    crc = U64(checksum) ^ ALL_BITS
    while at + 8 <= end:
        word = load_u64(at) ^ crc
        crc = (
            TABLES[7, word & U64(0xFF)]
            ^ TABLES[6, (word >> U64(8)) & U64(0xFF)]
            ^ TABLES[5, (word >> U64(16)) & U64(0xFF)]
            ^ TABLES[4, (word >> U64(24)) & U64(0xFF)]
            ^ TABLES[3, (word >> U64(32)) & U64(0xFF)]
            ^ TABLES[2, (word >> U64(40)) & U64(0xFF)]
            ^ TABLES[1, (word >> U64(48)) & U64(0xFF)]
            ^ TABLES[0, word >> U64(56)]
        )
        at += 8
    while at < end:
        crc = (crc >> U64(8)) ^ TABLES[0, (crc ^ U64(load_u8(at))) & U64(0xFF)]
        at += 1
    return crc ^ ALL_BITS


@njit(cache=True)
def crc32c(at, length):
    """The checksum of `length` bytes at an address."""
    return crc32c_continued(U64(0), at, length)
