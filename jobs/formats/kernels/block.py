"""What the kernels of all text formats share: the cursor, bad records, and the search for the end of a line."""

import numpy as np
from numba import njit

from strandline.kernels.bits import trailing_zeros
from strandline.kernels.machine import load_u8, load_u64

U64 = np.uint64
NEWLINE, RETURN, SPACE, TAB = 0x0A, 0x0D, 0x20, 0x09
NEWLINES = U64(0x0A0A0A0A0A0A0A0A)
ONES, HIGH_BITS = U64(0x0101010101010101), U64(0x8080808080808080)

# Places in the cursor. A kernel that is called again goes on from what stands there.
AT, LINE, RECORDS, SAMPLES, SERIES, LABEL_BYTES, GROUPS = 0, 1, 2, 3, 4, 5, 6
EXAMPLES, HARD_NUMBERS = 7, 8
NULLS = 9  # Values that are null.
UNUSED_SERIES = 10  # Not zero if a series may have no sample, since its record turned out bad or held nulls only.
FLAG = 11  # Of the format: in CSV that the header is still to come, in OpenMetrics that `# EOF` was read.
CURSOR = 12

# What a kernel returns: that all is done, or what it lacks room for.
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
def note_bad(cursor, counts, examples, start, end, line, reason):
    """Count a bad record, and keep the place of the first ones. `start` and `end` count from the input's start on."""
    counts[reason] += 1
    place = cursor[EXAMPLES]
    if place < len(examples):
        examples[place, 0], examples[place, 1], examples[place, 2], examples[place, 3] = start, end, line, reason
        cursor[EXAMPLES] = place + 1


@njit(cache=True)
def note_hard(cursor, hard, sample, start, length):
    """Keep the place of a number that must be converted in another way; whether there was room for it."""
    place = cursor[HARD_NUMBERS]
    if place == len(hard):
        return False
    hard[place, 0], hard[place, 1], hard[place, 2] = sample, start, length
    cursor[HARD_NUMBERS] = place + 1
    return True
