"""A kernel that estimates the size of samples as remote-write requests, before they are sorted and encoded."""

import numpy as np
from numba import njit

from strandline.recovery.periods import HOUR

# The bytes of a sample with its tag and length, for times between the years 1988 and 2109.
SAMPLE_SIZE = 20
# The bytes of a piece in addition to its labels and samples.
PIECE_SIZE = 8
_NEVER = np.iinfo(np.int64).min


@njit(cache=True, nogil=True)
def find_cuts(row, times, starts, max_bytes, cuts):
    """Divide samples into runs of at most `max_bytes`, or of one sample that takes more.

    Sets `cuts` to the first sample of each run but the first, as far as it has room. Returns (number of cuts, bytes of
    all samples). The labels of a series count once in a run for each sample whose hour differs from that of the sample
    before: at least as often as the series will be divided into pieces.
    """
    series = len(starts) - 1
    hours, seen = np.full(series, _NEVER, dtype=np.int64), np.full(series, -1, dtype=np.int64)
    run_start = n_cuts = 0
    size = total = np.int64(0)
    for sample in range(len(row)):
        of = row[sample]
        hour = times[sample] // HOUR
        added = np.int64(SAMPLE_SIZE)
        if seen[of] < run_start or hours[of] != hour:
            added += starts[of + 1] - starts[of] + PIECE_SIZE
        if size > 0 and size + added > max_bytes:
            if n_cuts < len(cuts):
                cuts[n_cuts] = sample
            n_cuts += 1
            run_start, size = sample, np.int64(0)
            added = SAMPLE_SIZE + starts[of + 1] - starts[of] + PIECE_SIZE
        hours[of], seen[of] = hour, sample
        size += added
        total += added
    return n_cuts, total
