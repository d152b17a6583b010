"""Series with samples: measured first, because a message has its length before its content, then written.

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
# The tags of a sample and of its value, with room for the sample's length between them.
SAMPLE_AND_VALUE = U64(0x090012)

# Sizes of a sample: without its time; its content without the time; its maximum, with the word that the store of a
# short time may overwrite.
FIXED, FIXED_CONTENT, MAX_SAMPLE = 12, 10, 12 + 10 + WORD
HEADER = 11  # A series' tag, and a length.
HEADER_DUE = -1


@njit(cache=True)
def _times_length(time, first, end_sample):
    """The size of the times of a run of samples."""
    if first == end_sample:
        return 0
    shortest = varint_length(load_u64(time + WORD * first))
    longest = varint_length(load_u64(time + WORD * (end_sample - 1)))
    # Times ascend, and so do their lengths, except that a negative time always takes ten bytes.
    if shortest == longest:
        return shortest * (end_sample - first)
    total = 0
    for sample in range(first, end_sample):
        total += varint_length(load_u64(time + WORD * sample))
    return total


@njit(cache=True, nogil=True)
def measure_series(columns, sizes):
    """Write the size of each series' content into `sizes`. Returns the total, including tags and lengths."""
    offsets, keys, first_sample, time, _ = columns
    total = 0
    for series in range(len(sizes)):
        entry = WORD * series
        labels = labels_length(keys + load_i64(offsets + entry), keys + load_i64(offsets + entry + WORD))
        first, end_sample = load_i64(first_sample + entry), load_i64(first_sample + entry + WORD)
        size = labels + FIXED * (end_sample - first) + _times_length(time, first, end_sample)
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
    """Write from a sample of a series on, until everything is written or `out` is full.

    Returns (series, sample, number of bytes): where to continue. The sample is `HEADER_DUE` if the series' length and
    labels are not written yet. `out` must have room for the longest labels, a header and a sample.
    """
    offsets, keys, first_sample, times, values = columns
    start = np.int64(out.ctypes.data)
    at, end = start, start + len(out)
    while series < len(sizes):
        entry = WORD * series
        if sample == HEADER_DUE:
            key, key_end = keys + load_i64(offsets + entry), keys + load_i64(offsets + entry + WORD)
            if at + HEADER + labels_length(key, key_end) > end:
                break
            store_u8(at, TAG_SERIES)
            at = put_labels(put_varint(at + 1, U64(sizes[series])), key, key_end)
            sample = load_i64(first_sample + entry)
        end_sample = load_i64(first_sample + entry + WORD)
        fitting = min(end_sample, sample + max(0, end - at) // MAX_SAMPLE)
        while sample < fitting:
            at = _put_sample(at, load_u64(times + WORD * sample), load_u64(values + WORD * sample))
            sample += 1
        if sample < end_sample:
            break
        series, sample = series + 1, HEADER_DUE
    return series, sample, at - start
