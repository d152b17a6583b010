"""Sequences of integers as a trend and residuals.

Scrape times lie on a line, counters rise in similar steps, gauges stay near their last value. The residuals are small,
often zero, and compress to a fraction of the numbers. All arithmetic wraps at 64 bits, so every sequence is restored
exactly, whatever the trend.

A sequence's residuals are stored in the *level* of their mean length in bits: residuals of similar magnitude compress
better together. At level 0 all residuals are zero, and nothing is stored.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Residuals are relative to a line through the first number, or to the previous number.
LINE, STEP = 0, 1
LEVELS = 8
# The maximum mean length of a residual in bits, from level 1; the last level has all longer ones.
LEVEL_BITS = np.array([1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 24.0])
PROBES = 33


@intrinsic
def _leading_zeros(_typing, word):
    def generate(_context, builder, _signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


@njit(cache=True, nogil=True)
def _bits(number):
    """Return the length of a number in bits, without its sign; only 0 has length 0."""
    sign = number >> np.int64(63)
    return np.int64(64) - _leading_zeros((number ^ sign) - sign)


@njit(cache=True, nogil=True)
def _median_step(numbers, start, end, probes):
    """Return the median of a sample of the steps, which gaps and resets do not affect."""
    steps = end - start - 1
    count = min(steps, len(probes))
    for probe in range(count):
        at = start + probe * steps // count
        step = numbers[at + 1] - numbers[at]
        position = probe
        while position > 0 and probes[position - 1] > step:
            probes[position] = probes[position - 1]
            position -= 1
        probes[position] = step
    return probes[count // 2]


@njit(cache=True, nogil=True)
def _level(bits, count):
    if bits == 0:
        return 0
    mean = bits / count
    level = 1
    while level < LEVELS and mean > LEVEL_BITS[level - 1]:
        level += 1
    return level


@njit(cache=True, nogil=True)
def find_trends(numbers, first, kind, slope, level):
    """Choose for each sequence the trend whose residuals have the fewest bits, and their level."""
    probes = np.empty(PROBES, dtype=np.int64)
    for sequence in range(len(first) - 1):
        start, end = first[sequence], first[sequence + 1]
        kind[sequence], slope[sequence], level[sequence] = LINE, 0, 0
        steps = end - start - 1
        if steps == 0:
            continue
        begin = numbers[start]
        line = (numbers[end - 1] - begin + steps // 2) // steps
        step = _median_step(numbers, start, end, probes)
        line_bits = step_bits = plain_bits = np.int64(0)
        for at in range(start + 1, end):
            rise = numbers[at] - numbers[at - 1]
            line_bits += _bits(numbers[at] - begin - line * (at - start))
            step_bits += _bits(rise - step)
            plain_bits += _bits(rise)
        # The slope is stored too.
        line_cost, step_cost = line_bits + _bits(line), step_bits + _bits(step)
        if line_cost <= min(step_cost, plain_bits):
            slope[sequence], level[sequence] = line, _level(line_bits, steps)
        elif step_cost < plain_bits:
            kind[sequence], slope[sequence], level[sequence] = STEP, step, _level(step_bits, steps)
        else:
            kind[sequence], level[sequence] = STEP, _level(plain_bits, steps)


@njit(cache=True, nogil=True)
def write_residuals(numbers, first, kind, slope, level, position, residuals):
    """Write the residuals of each sequence into `residuals`, from `position[level]`, which advances."""
    for sequence in range(len(first) - 1):
        if level[sequence] == 0:
            continue
        start, end, rise = first[sequence], first[sequence + 1], slope[sequence]
        shift = position[level[sequence]] - start - 1
        if kind[sequence] == LINE:
            begin = numbers[start]
            for at in range(start + 1, end):
                residuals[shift + at] = numbers[at] - begin - rise * (at - start)
        else:
            for at in range(start + 1, end):
                residuals[shift + at] = numbers[at] - numbers[at - 1] - rise
        position[level[sequence]] += end - start - 1


@njit(cache=True, nogil=True)
def locate_residuals(counts, level, position, residual_start):
    """Fill `residual_start` with the first residual of each sequence; `position[level]` is the next residual of each
    level, and advances.
    """
    for sequence in range(len(counts)):
        residual_start[sequence] = position[level[sequence]]
        if level[sequence] != 0:
            position[level[sequence]] += counts[sequence] - 1


@njit(cache=True, nogil=True)
def restore(begin, slope, kind, level, residuals, residual_start, count, numbers, to):
    """The inverse of `write_residuals` for one sequence of `count` numbers, written from `numbers[to]`."""
    numbers[to] = begin
    if level == 0:
        for at in range(1, count):
            numbers[to + at] = begin + slope * at
    elif kind == LINE:
        for at in range(1, count):
            numbers[to + at] = begin + slope * at + residuals[residual_start + at - 1]
    else:
        number = begin
        for at in range(1, count):
            number += slope + residuals[residual_start + at - 1]
            numbers[to + at] = number
