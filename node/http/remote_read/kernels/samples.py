"""Series with plain samples: measured first, because a message says its length before its content; then written.

    QueryResult { repeated TimeSeries timeseries = 1; }
    TimeSeries  { repeated Label labels = 1; repeated Sample samples = 2; }
    Sample      { double value = 1; int64 timestamp = 2; }

A sample always has both fields, also where they are 0: protobuf allows that, and -0.0 stays what it is.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u64, store_u8, store_u64
from strandline.node.http.remote_read.kernels.labels import labels_length, put_labels
from strandline.node.http.remote_read.kernels.words import (
    WORD,
    load_i64,
    put_short_varint,
    put_varint,
    store_u32,
    varint_length,
)

U64 = np.uint64
TAG_SERIES = np.uint8(0x0A)
TAG_TIME = np.uint8(0x10)
# The tags of a sample and of its value, with place for the sample's length between them.
SAMPLE_AND_VALUE = U64(0x090012)

# Of a sample's bytes: all but its time; its content without the time; the most that it can take, with the word that
# the store of a short time may touch behind.
FIXED, FIXED_CONTENT, LONGEST = 12, 10, 12 + 10 + WORD
HEADER = 11  # A series' tag, and a length.
HEADER_DUE = -1


@njit(cache=True)
def _times_length(time, first, behind):
    """How many bytes the times of a run of samples take."""
    if first == behind:
        return 0
    shortest = varint_length(load_u64(time + WORD * first))
    longest = varint_length(load_u64(time + WORD * (behind - 1)))
    # Times rise, and so do their lengths, but for the step from below zero, which always takes ten bytes, to above it.
    if shortest == longest:
        return shortest * (behind - first)
    total = 0
    for sample in range(first, behind):
        total += varint_length(load_u64(time + WORD * sample))
    return total


@njit(cache=True, nogil=True)
def measure_series(columns, sizes):
    """Put the length of each series' content into `sizes`; give that of all together, tags and lengths included."""
    offsets, keys, first_sample, time, _ = columns
    total = 0
    for series in range(len(sizes)):
        place = WORD * series
        labels = labels_length(keys + load_i64(offsets + place), keys + load_i64(offsets + place + WORD))
        first, behind = load_i64(first_sample + place), load_i64(first_sample + place + WORD)
        size = labels + FIXED * (behind - first) + _times_length(time, first, behind)
        sizes[series] = size
        total += 1 + varint_length(U64(size)) + size
    return total


@njit(cache=True)
def _put_sample(at, time, value):
    length = varint_length(time)
    store_u32(at, np.uint32(SAMPLE_AND_VALUE | (U64(FIXED_CONTENT + length) << U64(8))))
    store_u64(at + 3, value)
    store_u8(at + 11, TAG_TIME)
    if length <= WORD:
        return put_short_varint(at + FIXED, time, length)
    return put_varint(at + FIXED, time)


@njit(cache=True, nogil=True)
def write_series(columns, sizes, series, sample, out):
    """Write from a sample of a series on, until all is written or `out` is full.

    Gives (series, sample, number of bytes): where to go on. A sample of `HEADER_DUE` says that the series' length and
    labels are still to be written. `out` must have room for the longest labels, and for a header and a sample.
    """
    offsets, keys, first_sample, times, values = columns
    start = np.int64(out.ctypes.data)
    at, end = start, start + len(out)
    while series < len(sizes):
        place = WORD * series
        if sample == HEADER_DUE:
            key, key_end = keys + load_i64(offsets + place), keys + load_i64(offsets + place + WORD)
            if at + HEADER + labels_length(key, key_end) > end:
                break
            store_u8(at, TAG_SERIES)
            at = put_labels(put_varint(at + 1, U64(sizes[series])), key, key_end)
            sample = load_i64(first_sample + place)
        behind = load_i64(first_sample + place + WORD)
        fitting = min(behind, sample + max(0, end - at) // LONGEST)
        while sample < fitting:
            at = _put_sample(at, load_u64(times + WORD * sample), load_u64(values + WORD * sample))
            sample += 1
        if sample < behind:
            break
        series, sample = series + 1, HEADER_DUE
    return series, sample, at - start
