"""The kernels that split a request: plan the partition of each series, then copy its bytes.

A request is read in the same way as by the decoding kernels in `records.py`, with the same faults in the same fields.
Samples are not kept: a row of the plan is the address and size of a series' bytes, and its partition. A series whose
labels are not canonical gets new bytes in an array of the caller, so the request itself is not modified.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from strandline.kernels.machine import load_u8, store_u8
from strandline.kernels.xxh3 import hash_at
from strandline.wire.kernels.labels import (
    CANONICAL,
    MALFORMED,
    MAX_LABELS,
    REWRITE,
    TAG_LABEL,
    collect_labels,
    scan_canonical,
    write_canonical,
)
from strandline.wire.kernels.protobuf import BAD, compare_bytes, read_length, read_varint, skip_field
from strandline.wire.kernels.records import (
    BROKEN,
    COUNTS,
    EXEMPLARS,
    HISTOGRAMS,
    METADATA,
    MIN_SAMPLE_BYTES,
    MIN_SERIES_BYTES,
    TAG_EXEMPLAR,
    TAG_HISTOGRAM,
    TAG_METADATA,
    TAG_SAMPLE,
    TAG_SERIES,
    read_sample,
)

U64 = np.uint64

WITHOUT_SAMPLES = COUNTS  # One more index in the array of counts.
SPLIT_COUNTS = COUNTS + 1

MIN_KEPT_BYTES = MIN_SERIES_BYTES + MIN_SAMPLE_BYTES  # The smallest size of a row's series in a request.
# Room for the tag and length of a rewritten series: four bytes more than their smallest size, so that such a series
# needs less than twice its bytes.
HEADER = 6


@intrinsic
def copy_bytes(_typing, target, source, length):
    """Copy bytes between addresses. The two ranges must not overlap."""

    def generate(context, builder, _signature, arguments):
        byte = ir.IntType(8).as_pointer()
        to, start = (builder.inttoptr(address, byte) for address in arguments[:2])
        cgutils.raw_memcpy(builder, to, start, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@njit(cache=True)
def partition_of(key_low, partitions):
    """The partitioner: the low word of a part key's hash, modulo the number of partitions."""
    return np.int64(key_low % U64(partitions))


@njit(cache=True)
def _count_fields(at, end, times):
    """Count the contents of a series that `collect_labels` found well-formed, in any order.

    Returns (number of samples or `BROKEN`, number of exemplars, of histograms, bytes of its label fields), and widens
    `times` to include the samples' times.
    """
    n_samples, exemplars, histograms, label_bytes = 0, 0, 0, 0
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        if tag == TAG_SAMPLE:
            length, at = read_length(at, end)
            time, _, sound = read_sample(at, at + length)
            if not sound:
                return BROKEN, 0, 0, 0
            times[0], times[1] = min(times[0], time), max(times[1], time)
            n_samples += 1
            at += length
        else:
            at = skip_field(tag, at, end)
            if tag == TAG_LABEL:
                label_bytes += at - field
            elif tag == TAG_EXEMPLAR:
                exemplars += 1
            elif tag == TAG_HISTOGRAM:
                histograms += 1
    return n_samples, exemplars, histograms, label_bytes


@njit(cache=True)
def _put_header(content, length):
    """Write a series' tag and length so that they end where its content starts; return the position of the tag."""
    at = content - 1
    rest = length
    while rest >= 0x80:
        rest >>= 7
        at -= 1
    start = at - 1
    store_u8(start, np.uint8(TAG_SERIES))
    while length >= 0x80:
        store_u8(at, np.uint8((length & 0x7F) | 0x80))
        length >>= 7
        at += 1
    store_u8(at, np.uint8(length))
    return start


@njit(cache=True)
def _put_series(content, at, end, spans, n_labels, label_bytes):
    """Write a series to `content` with its collected labels in canonical form, followed by its other fields unchanged.

    Returns (start, end, low word of the key's hash). The start is `BAD` if this was unnecessary: the labels are
    canonical in place, and something else made the series unusual.
    """
    labels_end, _, _ = write_canonical(content, spans, n_labels)
    labels_length = labels_end - content
    key_low, _ = hash_at(content, labels_length)
    # The label fields have exactly this size, and these bytes are at the start: so there are no labels elsewhere.
    if labels_length == label_bytes and compare_bytes(at, labels_length, content, labels_length) == 0:
        return BAD, BAD, key_low
    to = labels_end
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        at = skip_field(tag, at, end)
        if tag != TAG_LABEL:
            copy_bytes(to, field, at - field)
            to += at - field
    return _put_header(content, to - content), to, key_low


@njit(cache=True, nogil=True)
def plan_series(data, partitions, limits, rows, spare, counts, times):
    """Read a request and plan a row for each series that is kept, in order.

    Returns (number of rows, how many of them were rewritten, position of the malformed field or `BAD`). A row is the
    partition, the address and size of the series' field, and its number of samples. Rows are valid while `data` and
    `spare` are alive. `rows` must have room for one row per `MIN_KEPT_BYTES` bytes, and `spare` must have twice the
    bytes plus `HEADER`. `times`, the earliest and the latest, is widened to include the times of all samples.
    """
    max_labels, max_name, max_value = limits
    partition, source, size, samples = rows
    spans = np.empty((MAX_LABELS, 4), dtype=np.int64)
    base, room = np.int64(data.ctypes.data), np.int64(spare.ctypes.data)
    at, end = base, base + len(data)
    n_rows, rewritten = 0, 0
    least, greatest = times[0], times[1]
    while at < end:
        field = at
        tag, at = read_varint(at, end)
        if at < 0:
            return n_rows, rewritten, field - base
        if tag != TAG_SERIES:
            if tag == TAG_METADATA:
                counts[METADATA] += 1
            at = skip_field(tag, at, end)
            if at < 0:
                return n_rows, rewritten, field - base
            continue
        length, start = read_length(at, end)
        if start < 0:
            return n_rows, rewritten, field - base
        at = start + length
        verdict, labels_end, _, _ = scan_canonical(start, at, max_labels, max_name, max_value)
        n_samples, here, unusual = 0, labels_end, verdict == REWRITE
        while here < at and not unusual:
            if load_u8(here) != TAG_SAMPLE:
                unusual = True
                continue
            length, here = read_length(here + 1, at)
            if here < 0:
                return n_rows, rewritten, field - base
            time, _, sound = read_sample(here, here + length)
            if not sound:
                return n_rows, rewritten, field - base
            least, greatest = min(least, time), max(greatest, time)
            n_samples += 1
            here += length
        exemplars, histograms, n_labels, label_bytes = 0, 0, 0, 0
        if unusual:
            verdict, n_labels = collect_labels(start, at, spans, max_labels, max_name, max_value)
            if verdict == MALFORMED:
                return n_rows, rewritten, field - base
            n_samples, exemplars, histograms, label_bytes = _count_fields(start, at, times)
            if n_samples < 0:
                return n_rows, rewritten, field - base
        if verdict != CANONICAL or n_samples == 0:
            counts[verdict if verdict != CANONICAL else WITHOUT_SAMPLES] += 1
            # For a series that is kept, the shard counts these.
            counts[EXEMPLARS] += exemplars
            counts[HISTOGRAMS] += histograms
            continue
        source[n_rows], size[n_rows], samples[n_rows] = field, at - field, n_samples
        if unusual:
            new, new_end, key_low = _put_series(room + HEADER, start, at, spans, n_labels, label_bytes)
            if new >= 0:
                source[n_rows], size[n_rows] = new, new_end - new
                room = new_end
                rewritten += 1
        else:
            key_low, _ = hash_at(start, labels_end - start)
        partition[n_rows] = partition_of(key_low, partitions)
        n_rows += 1
    times[0], times[1] = min(times[0], least), max(times[1], greatest)
    return n_rows, rewritten, BAD


@njit(cache=True, nogil=True)
def plan_parts(partitions, max_bytes, rows, part, parts):
    """Assign each row to a part: the newest of its partition, or a new one if that part would exceed `max_bytes`.

    Returns (number of parts, the first row that alone is too large or `BAD`). Parts are numbered in the order in which
    they are started. Each has a partition, a size, and numbers of series and samples in `parts`, which must have room
    for one part per row.
    """
    partition, _, size, samples = rows
    of_partition, part_size, part_series, part_samples = parts
    newest = np.full(partitions, -1, dtype=np.int64)
    n_parts = 0
    for row in range(len(size)):
        if size[row] > max_bytes:
            return n_parts, row
        chosen = newest[partition[row]]
        if chosen < 0 or part_size[chosen] + size[row] > max_bytes:
            chosen = n_parts
            newest[partition[row]] = chosen
            of_partition[chosen] = partition[row]
            part_size[chosen], part_series[chosen], part_samples[chosen] = 0, 0, 0
            n_parts += 1
        part[row] = chosen
        part_size[chosen] += size[row]
        part_series[chosen] += 1
        part_samples[chosen] += samples[row]
    return n_parts, BAD


@njit(cache=True, nogil=True)
def copy_series(rows, part, position, out):
    """Copy each row's bytes to its part's position in `out`; `position` is advanced to the ends of the parts."""
    _, source, size, _ = rows
    base = np.int64(out.ctypes.data)
    for row in range(len(size)):
        to = position[part[row]]
        copy_bytes(base + to, source[row], size[row])
        position[part[row]] = to + size[row]
