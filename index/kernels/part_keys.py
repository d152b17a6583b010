"""Converts canonical labels into part keys, and back.

Labels in a remote-write message are protobuf: tag, length of the label, tag, length of the name, name, tag, length of
the value, value, with lengths as varints. A part key has only the variable parts: for each label the name's length as
u16, the name, the value's length as u16, the value. Each form determines the other, byte for byte.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, load_u64
from strandline.kernels.xxh3 import hash_at
from strandline.wire.kernels.labels import METRIC_NAME
from strandline.wire.kernels.protobuf import put_varint, read_length, varint_size

TAG_LABEL, TAG_NAME, TAG_VALUE = 0x0A, 0x0A, 0x12


@njit(cache=True)
def _put_text(out, at, start, length):
    out[at] = length & 0xFF
    out[at + 1] = length >> 8
    for i in range(length):
        out[at + 2 + i] = load_u8(start + i)
    return at + 2 + length


@njit(cache=True, nogil=True)
def from_labels(data, starts, ends, out, offsets):
    """Write the part key of each range `data[starts[i]:ends[i]]` of canonical labels into `out`, and its end into
    `offsets[i + 1]`. A part key is never longer than its labels.
    """
    base = data.ctypes.data
    written = 0
    for key in range(len(starts)):
        at, end = base + starts[key], base + ends[key]
        while at < end:
            _, at = read_length(at + 1, end)
            length, at = read_length(at + 1, end)
            written = _put_text(out, written, at, length)
            at += length
            length, at = read_length(at + 1, end)
            written = _put_text(out, written, at, length)
            at += length
        offsets[key + 1] = written


@njit(cache=True)
def _to_labels(keys, start, end, out):
    """Write the canonical labels of one part key into `out`; return their length."""
    written = 0
    while start < end:
        name_length = np.int64(keys[start]) | np.int64(keys[start + 1]) << 8
        name = start + 2
        value = name + name_length + 2
        value_length = np.int64(keys[value - 2]) | np.int64(keys[value - 1]) << 8
        out[written] = TAG_LABEL
        length = 2 + varint_size(name_length) + name_length + varint_size(value_length) + value_length
        written = put_varint(out, written + 1, length)
        out[written] = TAG_NAME
        written = put_varint(out, written + 1, name_length)
        out[written : written + name_length] = keys[name : name + name_length]
        written += name_length
        out[written] = TAG_VALUE
        written = put_varint(out, written + 1, value_length)
        out[written : written + value_length] = keys[value : value + value_length]
        written += value_length
        start = value + value_length
    return written


@njit(cache=True, nogil=True)
def hash_part_keys(keys, offsets, low, high):
    """Compute the hash of each part key `keys[offsets[i]:offsets[i + 1]]`: that of its canonical labels."""
    longest = 0
    for key in range(len(offsets) - 1):
        longest = max(longest, offsets[key + 1] - offsets[key])
    # A label has at least two bytes and grows by at most eight.
    labels = np.empty(5 * longest + 8, dtype=np.uint8)
    for key in range(len(offsets) - 1):
        length = _to_labels(keys, offsets[key], offsets[key + 1], labels)
        low[key], high[key] = hash_at(labels.ctypes.data, length)


@njit(cache=True, nogil=True)
def hash_metrics(keys, offsets, out):
    """Compute the metric hash of each part key `keys[offsets[i]:offsets[i + 1]]`: the low word of its metric name's
    hash, or of the empty text's if it has no name.
    """
    base = keys.ctypes.data
    for key in range(len(offsets) - 1):
        at, end = base + offsets[key], base + offsets[key + 1]
        metric, metric_length = at, 0
        while at < end:
            name_length = np.int64(load_u8(at)) | np.int64(load_u8(at + 1)) << 8
            value = at + 2 + name_length + 2
            value_length = np.int64(load_u8(value - 2)) | np.int64(load_u8(value - 1)) << 8
            if name_length == 8 and load_u64(at + 2) == METRIC_NAME:
                metric, metric_length = value, value_length
            at = value + value_length
        out[key], _ = hash_at(metric, metric_length)
