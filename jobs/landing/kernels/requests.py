"""Kernels that encode samples as remote-write requests: first plan the record of each run of samples, then write.

A *piece* is one `TimeSeries` of one record: the labels of a series, and consecutive samples of it. Sizes are planned to
the byte, because a message is preceded by its length.
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import store_u8, store_u64
from strandline.wire.kernels.protobuf import varint_size
from strandline.wire.kernels.records import TAG_SAMPLE, TAG_SAMPLE_TIME, TAG_SAMPLE_VALUE, TAG_SERIES
from strandline.wire.kernels.split import copy_bytes, partition_of

U64 = np.uint64

# The bytes of a sample without its time: tag, length, tag and eight bytes of the value, tag of the time.
SAMPLE_BYTES = 12
# The largest overhead of a piece with one sample over its labels: a tag and a length, and a negative time.
MAX_ALONE = 1 + 3 + SAMPLE_BYTES + 10


@njit(cache=True)
def _time_size(time):
    """The bytes of a time as a varint; ten if it is negative."""
    rest, size = U64(time) >> U64(7), 1
    while rest != U64(0):
        rest >>= U64(7)
        size += 1
    return size


@njit(cache=True)
def _field_size(length):
    """The bytes of a field including its tag and length."""
    return 1 + varint_size(length) + length


@njit(cache=True, nogil=True)
def plan_pieces(ordered, row, times, starts, key_low, partitions, max_bytes, pieces, records):
    """Divide the ordered samples into pieces, and assign each one to the newest record of its partition, or to a new
    record if it does not fit.

    Returns (number of pieces, number of records). The columns of a piece: position of its first sample in `ordered`,
    series, length without tag and length, record. The columns of a record: partition, size, number of samples, number
    of pieces. Records are numbered in the order of their creation. `pieces` and `records` are as long as `ordered`. No
    series may take more than `max_bytes` with one sample.
    """
    piece_first, piece_row, piece_length, piece_record = pieces
    of_partition, size, record_samples, record_pieces = records
    newest = np.full(partitions, -1, dtype=np.int64)
    n_pieces, n_records = 0, 0
    current, length, record = -1, 0, -1
    for position in range(len(ordered)):
        sample = ordered[position]
        series = row[sample]
        sample_size = SAMPLE_BYTES + _time_size(times[sample])
        # The size of a record does not include its last piece while that grows.
        if series == current and size[record] + _field_size(length + sample_size) <= max_bytes:
            length += sample_size
            record_samples[record] += 1
            continue
        if current >= 0:
            piece_length[n_pieces - 1] = length
            size[record] += _field_size(length)
        current, length = series, starts[series + 1] - starts[series] + sample_size
        partition = partition_of(key_low[series], partitions)
        record = newest[partition]
        if record < 0 or size[record] + _field_size(length) > max_bytes:
            record = n_records
            newest[partition] = record
            of_partition[record] = partition
            size[record], record_samples[record], record_pieces[record] = 0, 0, 0
            n_records += 1
        piece_first[n_pieces], piece_row[n_pieces], piece_record[n_pieces] = position, series, record
        n_pieces += 1
        record_samples[record] += 1
        record_pieces[record] += 1
    if current >= 0:
        piece_length[n_pieces - 1] = length
        size[record] += _field_size(length)
    return n_pieces, n_records


@njit(cache=True)
def _put_varint(at, number):
    while number >= U64(0x80):
        store_u8(at, np.uint8((number & U64(0x7F)) | U64(0x80)))
        number >>= U64(7)
        at += 1
    store_u8(at, np.uint8(number))
    return at + 1


@njit(cache=True, nogil=True)
def write_pieces(ordered, times, value_bits, starts, labels, pieces, position_of, out):
    """Write each piece at the position of its record in `out`; afterwards, positions are where the records end."""
    piece_first, piece_row, piece_length, piece_record = pieces
    source, base = np.int64(labels.ctypes.data), np.int64(out.ctypes.data)
    for piece in range(len(piece_first)):
        stop = piece_first[piece + 1] if piece + 1 < len(piece_first) else len(ordered)
        series, record = piece_row[piece], piece_record[piece]
        at = base + position_of[record]
        store_u8(at, np.uint8(TAG_SERIES))
        at = _put_varint(at + 1, U64(piece_length[piece]))
        length = starts[series + 1] - starts[series]
        copy_bytes(at, source + starts[series], length)
        at += length
        for position in range(piece_first[piece], stop):
            sample = ordered[position]
            store_u8(at, np.uint8(TAG_SAMPLE))
            store_u8(at + 2, np.uint8(TAG_SAMPLE_VALUE))
            store_u64(at + 3, value_bits[sample])
            store_u8(at + 11, np.uint8(TAG_SAMPLE_TIME))
            end = _put_varint(at + SAMPLE_BYTES, U64(times[sample]))
            store_u8(at + 1, np.uint8(end - at - 2))
            at = end
        position_of[record] = at - base
