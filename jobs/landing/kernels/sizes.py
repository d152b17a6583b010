"""The kernel that says what samples take as remote-write requests, before they are sorted and written as such."""

import numpy as np
from numba import njit

from strandline.recovery.periods import HOUR

# What a sample takes with its tag and length, for times between the years 1988 and 2109.
SAMPLE_SIZE = 20
# What a piece takes beside its labels and samples.
PIECE_SIZE = 8
_NEVER = np.iinfo(np.int64).min


@njit(cache=True, nogil=True)
def find_cuts(row, times, starts, most, cuts):
    """Cut samples into runs that take about `most` bytes each, at most that unless a sample alone takes more.

    `cuts` gets the first sample of each run but the first, as many as it has room for. Gives (how many cuts there are,
    the bytes of all samples). A series has its labels once in a run for each time that its hour is another one than
    that of its sample before: never fewer times than its samples are divided into pieces.
    """
    series = len(starts) - 1
    hours, seen = np.full(series, _NEVER, dtype=np.int64), np.full(series, -1, dtype=np.int64)
    begun = n_cuts = 0
    size = total = np.int64(0)
    for sample in range(len(row)):
        of = row[sample]
        hour = times[sample] // HOUR
        added = np.int64(SAMPLE_SIZE)
        if seen[of] < begun or hours[of] != hour:
            added += starts[of + 1] - starts[of] + PIECE_SIZE
        if size > 0 and size + added > most:
            if n_cuts < len(cuts):
                cuts[n_cuts] = sample
            n_cuts += 1
            begun, size = sample, np.int64(0)
            added = SAMPLE_SIZE + starts[of + 1] - starts[of] + PIECE_SIZE
        hours[of], seen[of] = hour, sample
        size += added
        total += added
    return n_cuts, total
