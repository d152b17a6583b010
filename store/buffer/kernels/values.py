"""Encodes the values of runs as numbers that compress, and decodes them, bit for bit.

Counters are integers and gauges often have few decimals: a run whose values are all integers divided by the same power
of ten becomes integers, stored as differences. Any other run becomes the differences between its values' bits. Each run
has its own kind, because series of all kinds are adjacent in a page.
"""

import numpy as np
from numba import njit

# A decimal literal is the nearest double to its digits, and so is a correctly rounded quotient: division restores it.
SCALES = np.array([1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e9])
RAW = np.uint8(len(SCALES))
CONSTANT = np.uint8(16)  # Added to the kind of a run whose values have the same bits: only the first is stored.
WHOLE_LIMIT = 2.0**53  # Below this, each integer has exactly one double.


@njit(cache=True)
def _kind_of(value, start, end):
    """Return the index in `SCALES` of the smallest power of ten that makes every value of a run an integer; `RAW` if
    there is none.
    """
    kind, sample = 0, start
    while sample < end:
        scaled = value[sample] * SCALES[kind]
        if not abs(scaled) < WHOLE_LIMIT:  # Also of a NaN.
            return RAW
        whole = np.rint(scaled)
        if whole / SCALES[kind] == value[sample] and not (whole == 0.0 and np.signbit(value[sample])):
            sample += 1
            continue
        kind += 1
        if kind == len(SCALES):
            return RAW
        sample = start
    return np.uint8(kind)


@njit(cache=True)
def _is_constant(bits, start, end):
    sample = start + 1
    while sample < end and bits[sample] == bits[start]:
        sample += 1
    return sample == end


@njit(cache=True, nogil=True)
def split_values(first, value, bits, kinds, whole_starts, whole_steps, raw_starts, raw_steps):
    """Fill `kinds` with the kind of each run, and the four streams. Return the length of each stream. `bits` are the
    bits of `value`.
    """
    n_whole_starts, n_whole_steps, n_raw_starts, n_raw_steps = 0, 0, 0, 0
    for run in range(len(first) - 1):
        start, end = first[run], first[run + 1]
        constant = _is_constant(bits, start, end)
        if constant:
            end = start + 1
        kind = _kind_of(value, start, end)
        kinds[run] = kind + CONSTANT if constant else kind
        if kind == RAW:
            raw_starts[n_raw_starts] = bits[start]
            n_raw_starts += 1
            for sample in range(start + 1, end):
                raw_steps[n_raw_steps] = bits[sample] - bits[sample - 1]
                n_raw_steps += 1
            continue
        scale = SCALES[kind]
        last = np.int64(np.rint(value[start] * scale))
        whole_starts[n_whole_starts] = last
        n_whole_starts += 1
        for sample in range(start + 1, end):
            whole = np.int64(np.rint(value[sample] * scale))
            whole_steps[n_whole_steps] = whole - last
            last = whole
            n_whole_steps += 1
    return n_whole_starts, n_whole_steps, n_raw_starts, n_raw_steps


@njit(cache=True, nogil=True)
def join_values(counts, kinds, whole_starts, whole_steps, raw_starts, raw_steps, to, value, bits):
    """Write the values of each run from `value[to[run]]`; runs with a negative `to` are skipped. The inverse of
    `split_values`. `bits` is the same memory as `value`, and `counts` has the length of each run.
    """
    n_whole_starts, n_whole_steps, n_raw_starts, n_raw_steps = 0, 0, 0, 0
    for run in range(len(counts)):
        count, at = np.int64(counts[run]), to[run]
        stored = 1 if kinds[run] & CONSTANT else count
        kind = kinds[run] & ~CONSTANT
        if at >= 0:
            if kind == RAW:
                bits[at] = raw_starts[n_raw_starts]
                for sample in range(1, stored):
                    bits[at + sample] = bits[at + sample - 1] + raw_steps[n_raw_steps + sample - 1]
            else:
                scale = SCALES[kind]
                whole = whole_starts[n_whole_starts]
                value[at] = whole / scale
                for sample in range(1, stored):
                    whole += whole_steps[n_whole_steps + sample - 1]
                    value[at + sample] = whole / scale
            for sample in range(at + stored, at + count):
                bits[sample] = bits[at]
        if kind == RAW:
            n_raw_starts += 1
            n_raw_steps += stored - 1
        else:
            n_whole_starts += 1
            n_whole_steps += stored - 1
