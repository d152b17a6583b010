"""Finding series that are not taken. Only requests that hold one come this way, so that it costs the others nothing.

What is given has been walked before and is sound; it is read as hostile all the same, and the walk ends at the first
field that is not.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import store_u8
from strandline.wire.kernels.labels import MAX_LABELS, REWRITE, gather
from strandline.wire.kernels.protobuf import read_length, read_varint, skip_field
from strandline.wire.kernels.split import copy_bytes
from strandline.wire.kernels.walk import TAG_SAMPLE, TAG_SERIES, read_sample

TOO_OLD, TOO_FAR_AHEAD = 0, 1
# Places of what is counted for each of the two: samples, and series that have some.
SAMPLES, SERIES = 0, 1


@njit(cache=True, nogil=True)
def find_large(data, max_bytes, spans):
    """Where the fields of series lie that take more than `max_bytes` bytes: how many, as rows (start, end) of `spans`.

    `spans` must have a row for every `max_bytes` bytes.
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
    """Find the first series that is dropped for each verdict, until `kinds` verdicts have theirs.

    `spans` has a row (start, end) for each verdict, which stays as it is where there is none.
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
        verdict, _ = gather(start, at, labels, max_labels, max_name, max_value)
        if verdict > REWRITE and not seen[verdict]:
            seen[verdict] = True
            spans[verdict, 0], spans[verdict, 1] = start - base, at - base
            kinds -= 1


@njit(cache=True)
def _count_out_of_range(at, end, min_time, max_time, found):
    """Count the samples of a series that lie before `min_time` or behind `max_time`, into two places of `found`.

    Gives (bytes that their fields take, number of the others), or the first as -1 for what is not sound.
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
    """Write a series' field without its out_of_range samples, so that its content has `length` bytes; where it ends."""
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
    """Write a request to `out`, which is as long as `data`, without samples that lie before `min_time` or behind
    `max_time`, and without series that have no other.

    Gives (how many bytes were written, how many series lost some of their samples and not all). `counts` has two places
    for each of the two kinds, and `spans` a row with the first series of each. What is not sound is copied as it is,
    with all that follows.
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
