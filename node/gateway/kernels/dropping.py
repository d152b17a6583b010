"""Finds the series and samples that are not accepted. Runs only for requests that contain some.

The request has been parsed before and is well-formed. These kernels check it nevertheless, and stop at the first
malformed field.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import store_u8
from strandline.wire.kernels.labels import MAX_LABELS, REWRITE, collect_labels
from strandline.wire.kernels.protobuf import read_length, read_varint, skip_field
from strandline.wire.kernels.records import TAG_SAMPLE, TAG_SERIES, read_sample
from strandline.wire.kernels.split import copy_bytes

TOO_OLD, TOO_FAR_AHEAD = 0, 1
# Indices of the two counts for each of them: samples, and series with such samples.
SAMPLES, SERIES = 0, 1


@njit(cache=True, nogil=True)
def find_large(data, max_bytes, spans):
    """Find series whose fields are longer than `max_bytes`. Fills rows (start, end) of `spans`, and returns their
    number.

    `spans` must have one row for every `max_bytes` bytes of the request.
    """
    base = np.int64(data.ctypes.data)
    at, end, found = base, base + len(data), 0
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        if at < 0:
            return found
        at = skip_field(tag, at, end)
        if at < 0:
            return found
        if tag == TAG_SERIES and at - field > max_bytes:
            spans[found, 0], spans[found, 1] = field - base, at - base
            found += 1
    return found


@njit(cache=True, nogil=True)
def find_dropped(data, limits, kinds, spans):
    """Find the first dropped series of each verdict, until `kinds` verdicts are found.

    `spans` has a row (start, end) for each verdict. Rows of verdicts without a series are not changed.
    """
    max_labels, max_name, max_value = limits
    labels = np.empty((MAX_LABELS, 4), dtype=np.int64)
    seen = np.zeros(len(spans), dtype=np.bool_)
    base = np.int64(data.ctypes.data)
    at, end = base, base + len(data)
    while at < end and kinds > 0:
        tag, at = read_varint(at, end)
        if at < 0:
            return
        if tag != TAG_SERIES:
            at = skip_field(tag, at, end)
            if at < 0:
                return
            continue
        length, start = read_length(at, end)
        if start < 0:
            return
        at = start + length
        verdict, _ = collect_labels(start, at, labels, max_labels, max_name, max_value)
        if verdict > REWRITE and not seen[verdict]:
            seen[verdict] = True
            spans[verdict, 0], spans[verdict, 1] = start - base, at - base
            kinds -= 1


@njit(cache=True)
def _count_out_of_range(at, end, min_time, max_time, found):
    """Count the samples of a series before `min_time` and after `max_time` into the two elements of `found`.

    Returns (bytes of their fields, number of other samples). The bytes are -1 if the series is malformed.
    """
    found[:] = 0
    taken, others = 0, 0
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        if at < 0:
            return -1, 0
        if tag != TAG_SAMPLE:
            at = skip_field(tag, at, end)
            if at < 0:
                return -1, 0
            continue
        length, at = read_length(at, end)
        if at < 0:
            return -1, 0
        time, _, sound = read_sample(at, at + length)
        if not sound:
            return -1, 0
        at += length
        if min_time <= time <= max_time:
            others += 1
        else:
            found[TOO_OLD if time < min_time else TOO_FAR_AHEAD] += 1
            taken += at - field
    return taken, others


@njit(cache=True)
def _write_in_range(to, at, end, length, min_time, max_time):
    """Write a series' field, with a content of `length` bytes, without the samples that are out of range. Returns the
    address of its end.
    """
    store_u8(to, np.uint8(TAG_SERIES))
    to += 1
    while length >= 0x80:
        store_u8(to, np.uint8((length & 0x7F) | 0x80))
        length >>= 7
        to += 1
    store_u8(to, np.uint8(length))
    to += 1
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        if tag == TAG_SAMPLE:
            size, at = read_length(at, end)
            time, _, _ = read_sample(at, at + size)
            at += size
            if not min_time <= time <= max_time:
                continue
        else:
            at = skip_field(tag, at, end)
        copy_bytes(to, field, at - field)
        to += at - field
    return to


@njit(cache=True, nogil=True)
def drop_out_of_range(data, min_time, max_time, out, counts, spans):
    """Write a request to `out`, which is as long as `data`, without samples before `min_time` or after `max_time`, and
    without series that have only such samples.

    Returns (written bytes, number of series that lost some of their samples but not all). `counts` has two counts for
    each of the two kinds, and `spans` a row with the first series of each. From the first malformed field on, the rest
    of the request is copied unchanged.
    """
    base, to = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    first = to
    at, end = base, base + len(data)
    found, shortened = np.zeros(2, dtype=np.int64), 0
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        start = at
        if at >= 0:
            at = skip_field(tag, at, end)
        if at < 0:
            copy_bytes(to, field, end - field)
            return to + end - field - first, shortened
        taken, others = 0, 0
        if tag == TAG_SERIES:
            _, start = read_length(start, end)
            taken, others = _count_out_of_range(start, at, min_time, max_time, found)
        if taken <= 0:
            copy_bytes(to, field, at - field)
            to += at - field
            continue
        for kind in range(2):
            if found[kind]:
                if counts[kind, SERIES] == 0:
                    spans[kind, 0], spans[kind, 1] = start - base, at - base
                counts[kind, SAMPLES] += found[kind]
                counts[kind, SERIES] += 1
        if others:
            to = _write_in_range(to, start, at, at - start - taken, min_time, max_time)
            shortened += 1
    return to - first, shortened
