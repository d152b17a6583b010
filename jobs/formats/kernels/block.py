"""Code shared by the kernels of text formats: the cursor, bad records, and the search for line ends."""

import numpy as np
from numba import njit

from strandline.kernels.bits import trailing_zeros
from strandline.kernels.machine import load_u8, load_u64

U64 = np.uint64
NEWLINE, RETURN, SPACE, TAB = 0x0A, 0x0D, 0x20, 0x09
NEWLINES = U64(0x0A0A0A0A0A0A0A0A)
ONES, HIGH_BITS = U64(0x0101010101010101), U64(0x8080808080808080)

# Indices in the cursor, from which a kernel continues when it is called again.
AT, LINE, RECORDS, SAMPLES, SERIES, LABEL_BYTES, GROUPS = 0, 1, 2, 3, 4, 5, 6
EXAMPLES, HARD_NUMBERS = 7, 8
NULLS = 9  # The number of null values.
UNUSED_SERIES = 10  # Not 0 if a series may have no samples, because its record is bad or has only nulls.
FLAG = 11  # For CSV: the header is not read yet. For OpenMetrics: `# EOF` was read.
CURSOR = 12

# The results of kernels: done, or what is full.
DONE, MORE_SAMPLES, MORE_SERIES, MORE_LABELS, MORE_GROUPS, MORE_HARD = 0, 1, 2, 3, 4, 5
EXAMPLE_WORDS = 4  # Start and end in the input, line, reason.
HARD_WORDS = 3  # Sample, start in the input, length.


@njit(cache=True)
def line_end(at, end):
    """The position of the next newline, or `end`."""
    while at + 8 <= end:
        word = load_u64(at) ^ NEWLINES
        found = (word - ONES) & ~word & HIGH_BITS
        if found != U64(0):
            return at + (trailing_zeros(found) >> 3)
        at += 8
    while at < end and load_u8(at) != NEWLINE:
        at += 1
    return at


@njit(cache=True)
def skip_blanks(at, end):
    """The position of the next byte that is neither a space nor a tab, or `end`."""
    while at < end and (load_u8(at) == SPACE or load_u8(at) == TAB):
        at += 1
    return at


@njit(cache=True)
def add_bad(cursor, counts, examples, start, end, line, reason):
    """Count a bad record, and store the position of the first ones. `start` and `end` are relative to the input."""
    counts[reason] += 1
    index = cursor[EXAMPLES]
    if index < len(examples):
        examples[index, 0], examples[index, 1], examples[index, 2], examples[index, 3] = start, end, line, reason
        cursor[EXAMPLES] = index + 1


@njit(cache=True)
def add_hard(cursor, hard, sample, start, length):
    """Store the position of a number that Python must convert. False if the column is full."""
    index = cursor[HARD_NUMBERS]
    if index == len(hard):
        return False
    hard[index, 0], hard[index, 1], hard[index, 2] = sample, start, length
    cursor[HARD_NUMBERS] = index + 1
    return True
