"""Chunks of samples in Prometheus' XOR encoding, as a bit stream, highest bit of a byte first.

A chunk is: the number of samples as a big-endian u16, then, for

- the first sample, its time as a zigzag varint and its value as 64 bits;
- the second, how much later it is as a varint, and its value as below;
- each other, how much the step in time has changed, and its value.

A change of step is `0` for none; `10`, `110` or `1110` and 14, 17 or 20 bits where it fits those; `1111` and 64 bits
otherwise. n bits hold the numbers from -(2^(n-1) - 1) to 2^(n-1).

A value is compared with the previous one by XOR: `0` if they are equal; `10` and the bits in the previous window, if no
bit differs outside of it; otherwise `11`, five bits for the number of leading zeros (at most 31), six for the number of
bits in the new window (0 means 64), and these bits.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u64, store_u8
from strandline.node.http.remote_read.kernels.words import (
    WORD,
    leading_zeros,
    load_i64,
    put_varint,
    store_u64_big,
    trailing_zeros,
)

U64 = np.uint64
CHUNK_SAMPLES = 120
# The maximum size of a chunk: the count, two varints, a value, the longest samples, and a word that a store may
# overwrite.
_MAX_SAMPLE_BITS = 4 + 64 + 2 + 5 + 6 + 64
CHUNK_BYTES = 2 + 10 + 8 + 10 + (CHUNK_SAMPLES * _MAX_SAMPLE_BITS + 7) // 8 + WORD

# An impossible window, so that the first difference opens one.
NO_WINDOW = U64(64)


@njit(cache=True)
def _put_bits(at, held, used, bits, count):
    """Append the lowest `count` bits of a word, whose other bits are 0. Returns (position, buffered bits, their
    number).

    Bits are buffered, from the highest on, until there are 64.
    """
    free = U64(64) - used
    if count < free:
        return at, held | (bits << (free - count)), used + count
    left = count - free
    store_u64_big(at, held | (bits >> left))
    # Two shifts, because a shift by 64 is undefined.
    held = (bits << (U64(63) - left)) << U64(1)
    return at + WORD, held, left


@njit(cache=True)
def _put_step_change(at, held, used, change):
    low = U64(change)
    if change == 0:
        return _put_bits(at, held, used, U64(0), U64(1))
    if -0x1FFF <= change <= 0x2000:
        return _put_bits(at, held, used, (U64(0b10) << U64(14)) | (low & U64(0x3FFF)), U64(16))
    if -0xFFFF <= change <= 0x10000:
        return _put_bits(at, held, used, (U64(0b110) << U64(17)) | (low & U64(0x1FFFF)), U64(20))
    if -0x7FFFF <= change <= 0x80000:
        return _put_bits(at, held, used, (U64(0b1110) << U64(20)) | (low & U64(0xFFFFF)), U64(24))
    at, held, used = _put_bits(at, held, used, U64(0b1111), U64(4))
    return _put_bits(at, held, used, low, U64(64))


@njit(cache=True)
def put_chunk(at, times, values, count):
    """Encode the samples from two addresses on, at least one. Returns the position after the chunk."""
    store_u8(at, np.uint8(count >> 8))
    store_u8(at + 1, np.uint8(count & 0xFF))
    time, value = load_i64(times), load_u64(values)
    at = put_varint(at + 2, U64((time << 1) ^ (time >> 63)))
    store_u64_big(at, value)
    at += WORD
    held, used = U64(0), U64(0)
    step = np.int64(0)
    leading, trailing = NO_WINDOW, NO_WINDOW
    for sample in range(1, count):
        time_before, value_before, step_before = time, value, step
        time, value = load_i64(times + WORD * sample), load_u64(values + WORD * sample)
        # Modulo 2^64, as in decoders: a step may exceed an int64.
        step = time - time_before
        if sample == 1:
            at = put_varint(at, U64(step))
        else:
            at, held, used = _put_step_change(at, held, used, step - step_before)
        different = value ^ value_before
        if different == U64(0):
            at, held, used = _put_bits(at, held, used, U64(0), U64(1))
            continue
        new_leading, new_trailing = min(leading_zeros(different), U64(31)), trailing_zeros(different)
        if new_leading >= leading and new_trailing >= trailing:
            at, held, used = _put_bits(at, held, used, U64(0b10), U64(2))
        else:
            leading, trailing = new_leading, new_trailing
            window = U64(64) - leading - trailing
            opening = (U64(0b11) << U64(11)) | (leading << U64(6)) | (window & U64(63))
            at, held, used = _put_bits(at, held, used, opening, U64(13))
        at, held, used = _put_bits(at, held, used, different >> trailing, U64(64) - leading - trailing)
    store_u64_big(at, held)
    return at + np.int64((used + U64(7)) // U64(8))
