"""The kernels that read the bytes of records and fill columns.

Input is treated as hostile: every length is checked before it is used, and every loop ends with the bytes. The caller
provides the output arrays. If they are full, decoding stops before the record that did not fit, and the caller
continues from there with larger ones.
"""

from enum import IntEnum

import numpy as np
from numba import njit

from strandline.kernels.machine import load_f64, load_u8
from strandline.kernels.xxh3 import hash_at
from strandline.wire.kernels.labels import (
    CANONICAL,
    MALFORMED,
    MAX_LABELS,
    REWRITE,
    Verdict,
    collect_labels,
    scan_canonical,
    write_canonical,
)
from strandline.wire.kernels.protobuf import read_length, read_varint, skip_field

TAG_SERIES, TAG_METADATA = 0x0A, 0x1A
TAG_SAMPLE, TAG_EXEMPLAR, TAG_HISTOGRAM = 0x12, 0x1A, 0x22
TAG_SAMPLE_VALUE, TAG_SAMPLE_TIME = 0x09, 0x10


class Count(IntEnum):
    """Indexes in the array of counts, after one for each `Verdict`."""

    EXEMPLARS = len(Verdict)
    HISTOGRAMS = len(Verdict) + 1
    METADATA = len(Verdict) + 2


COUNTS = len(Verdict) + len(Count)
EXEMPLARS, HISTOGRAMS, METADATA = int(Count.EXEMPLARS), int(Count.HISTOGRAMS), int(Count.METADATA)

# Why decoding a part of a message stopped.
BROKEN, NO_ROOM = -1, -2

# The smallest size of a row in a message: a tag and a length, and for a series also a label of eight bytes.
MIN_SERIES_BYTES, MIN_SAMPLE_BYTES = 10, 2


@njit(cache=True)
def read_sample(at, end):
    """The content of a sample: (time, value, whether it is well-formed). Fields may be in any order; the last of a kind
    counts.
    """
    time, value = np.int64(0), 0.0
    # The form that clients send: the value, then the time, and nothing else.
    if at + 10 < end and load_u8(at) == TAG_SAMPLE_VALUE and load_u8(at + 9) == TAG_SAMPLE_TIME:
        raw, after = read_varint(at + 10, end)
        if after == end:
            return np.int64(raw), load_f64(at + 1), True
    while at < end:
        tag, at = read_varint(at, end)
        if at < 0:
            return time, value, False
        if tag == TAG_SAMPLE_VALUE:
            if at + 8 > end:
                return time, value, False
            value = load_f64(at)
            at += 8
        elif tag == TAG_SAMPLE_TIME:
            raw, at = read_varint(at, end)
            if at < 0:
                return time, value, False
            time = np.int64(raw)
        else:
            at = skip_field(tag, at, end)
            if at < 0:
                return time, value, False
    return time, value, True


@njit(cache=True)
def _decode_unusual_series(at, end, limits, spans, times, values, n_samples, counts):
    """A series that does not consist of labels in canonical form followed by samples, but is otherwise valid protobuf.

    Returns (number of samples so far, or `BROKEN` or `NO_ROOM`; verdict; end of the labels; start and length of the
    metric's name). Everything else is read before the labels are overwritten in canonical form.
    """
    max_labels, max_name, max_value = limits
    verdict, n_labels = collect_labels(at, end, spans, max_labels, max_name, max_value)
    if verdict == MALFORMED:
        return BROKEN, verdict, at, at, 0
    field = at
    while field < end:
        tag, field = read_varint(field, end)
        if tag == TAG_SAMPLE:
            length, field = read_length(field, end)
            if n_samples == len(times):
                return NO_ROOM, verdict, at, at, 0
            times[n_samples], values[n_samples], sound = read_sample(field, field + length)
            if not sound:
                return BROKEN, verdict, at, at, 0
            n_samples += 1
            field += length
        else:
            if tag == TAG_EXEMPLAR:
                counts[EXEMPLARS] += 1
            elif tag == TAG_HISTOGRAM:
                counts[HISTOGRAMS] += 1
            field = skip_field(tag, field, end)  # Well-formed: `collect_labels` has checked it.
    labels_end, metric, metric_length = at, at, 0
    if verdict == CANONICAL:
        labels_end, metric, metric_length = write_canonical(at, spans, n_labels)
    return n_samples, verdict, labels_end, metric, metric_length


@njit(cache=True)
def _decode_record(base, at, end, limits, spans, series, n_series, samples, n_samples, counts):
    """One request: (0, `BROKEN` or `NO_ROOM`; number of series; number of samples; the malformed field if there is
    one).

    Positions are addresses minus `base`.
    """
    max_labels, max_name, max_value = limits
    _, labels_start, labels_length, key_low, key_high, metric_hash, first_sample = series
    times, values = samples
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        if at < 0:
            return BROKEN, n_series, n_samples, field
        if tag != TAG_SERIES:
            if tag == TAG_METADATA:
                counts[METADATA] += 1
            at = skip_field(tag, at, end)
            if at < 0:
                return BROKEN, n_series, n_samples, field
            continue
        length, start = read_length(at, end)
        if start < 0:
            return BROKEN, n_series, n_samples, field
        if n_series == len(labels_start):
            return NO_ROOM, n_series, n_samples, field
        at = start + length
        first = n_samples
        verdict, labels_end, metric, metric_length = scan_canonical(start, at, max_labels, max_name, max_value)
        here, unusual = labels_end, verdict == REWRITE
        while here < at and not unusual:
            if load_u8(here) != TAG_SAMPLE:
                unusual = True
                continue
            length, here = read_length(here + 1, at)
            if here < 0:
                return BROKEN, n_series, n_samples, field
            if n_samples == len(times):
                return NO_ROOM, n_series, n_samples, field
            times[n_samples], values[n_samples], sound = read_sample(here, here + length)
            if not sound:
                return BROKEN, n_series, n_samples, field
            n_samples += 1
            here += length
        if unusual:
            # Once its labels are overwritten, a record can't be decoded again with longer arrays. So before that, there
            # has to be room for anything that the rest of it may contain.
            rest = end - field
            if (len(labels_start) - n_series) * MIN_SERIES_BYTES < rest or (
                len(times) - first
            ) * MIN_SAMPLE_BYTES < rest:
                return NO_ROOM, n_series, n_samples, field
            n_samples, verdict, labels_end, metric, metric_length = _decode_unusual_series(
                start, at, limits, spans, times, values, first, counts
            )
            if n_samples < 0:
                return n_samples, n_series, first, field
        if verdict != CANONICAL:
            counts[verdict] += 1
            n_samples = first
            continue
        labels_start[n_series] = start - base
        labels_length[n_series] = labels_end - start
        key_low[n_series], key_high[n_series] = hash_at(start, labels_end - start)
        metric_hash[n_series], _ = hash_at(metric, metric_length)
        first_sample[n_series] = first
        n_series += 1
    return 0, n_series, n_samples, at


@njit(cache=True, nogil=True)
def decode_records(data, bounds, done, fault_at, limits, series, n_series, samples, n_samples, counts):
    """Decode records from number `done` on. Returns (records done, number of series, number of samples).

    Record r is `data[bounds[r] : bounds[r + 1]]`. If it is malformed, its rows and counts are discarded, and
    `fault_at[r]` is set to the position in it. Records that have a fault already are skipped. If fewer records are done
    than there are, the next one did not fit into the arrays.
    """
    base = data.ctypes.data
    spans = np.empty((MAX_LABELS, 4), dtype=np.int64)
    own_counts = np.zeros(COUNTS, dtype=np.int64)
    for number in range(done, len(bounds) - 1):
        if fault_at[number] >= 0:
            continue
        own_counts[:] = 0
        start, end = base + bounds[number], base + bounds[number + 1]
        ended, new_series, new_samples, where = _decode_record(
            base, start, end, limits, spans, series, n_series, samples, n_samples, own_counts
        )
        if ended == NO_ROOM:
            return number, n_series, n_samples
        if ended == BROKEN:
            fault_at[number] = where - start
            continue
        series[0][n_series:new_series] = number
        n_series, n_samples = new_series, new_samples
        counts += own_counts
    return len(bounds) - 1, n_series, n_samples
