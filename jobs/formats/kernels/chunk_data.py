"""Locates chunks in a block's chunk files, and decodes those in XOR encoding.

Chunk           length of the data <uvarint>, encoding <1 byte>, data, CRC-32C of encoding and data <4 bytes>.
XOR             as in `strandline.node.http.remote_read.kernels.xor_chunks`, where such chunks are written.

Every length is checked before it is used. `data` must have 64 readable bytes after its content, because bits are read
in 64-bit words, and only checked once per sample.
"""

from enum import IntEnum

import numpy as np
from numba import njit

from strandline.jobs.formats.kernels.index_entries import load_u32_big
from strandline.kernels.crc32c import crc32c
from strandline.kernels.machine import load_u8, load_u64_big
from strandline.wire.kernels.protobuf import read_varint

U64 = np.uint64
FILE_HEADER = 8
MAX_CHUNK_BYTES = 16 << 20  # A longer chunk is damage: 65,535 samples never take as much.
ENCODING_XOR = 1


class ChunkState(IntEnum):
    """The state of a chunk."""

    XOR = 0
    OUTSIDE = 1
    CUT_OFF = 2
    WRONG_CHECKSUM = 3
    NATIVE_HISTOGRAM = 4
    UNKNOWN_ENCODING = 5
    MALFORMED = 6


XOR, OUTSIDE, CUT_OFF = int(ChunkState.XOR), int(ChunkState.OUTSIDE), int(ChunkState.CUT_OFF)
WRONG_CHECKSUM, NATIVE_HISTOGRAM = int(ChunkState.WRONG_CHECKSUM), int(ChunkState.NATIVE_HISTOGRAM)
UNKNOWN_ENCODING, MALFORMED = int(ChunkState.UNKNOWN_ENCODING), int(ChunkState.MALFORMED)


@njit(cache=True, nogil=True)
def cut_runs(segments, offsets, max_gap, max_run_bytes, firsts):
    """Divide chunks into runs that are read together: each in one file, in order, without large gaps, not too long.

    Fills `firsts` with the first chunk of each run. Returns the number of runs.
    """
    runs = 0
    begin = np.int64(0)
    for chunk in range(len(offsets)):
        if (
            chunk == 0
            or segments[chunk] != segments[chunk - 1]
            or offsets[chunk] < offsets[chunk - 1]
            or offsets[chunk] - offsets[chunk - 1] > max_gap
            or offsets[chunk] - begin > max_run_bytes
        ):
            firsts[runs] = chunk
            runs += 1
            begin = offsets[chunk]
    return runs


@njit(cache=True, nogil=True)
def needed_end(data, base, used, offsets, file_size):
    """The position in the file after the last byte of the chunks of a run, as far as their lengths are in `data`.
    Chunks with an invalid length are ignored.
    """
    memory = np.int64(data.ctypes.data)
    needed = base + used
    for chunk in range(len(offsets)):
        at = memory + offsets[chunk] - base
        if offsets[chunk] < base or at >= memory + used:
            continue
        length, start = read_varint(at, memory + used)
        if start > 0 and length <= U64(MAX_CHUNK_BYTES):
            needed = max(needed, base + (start - memory) + np.int64(length) + 5)
    return min(needed, file_size)


@njit(cache=True, nogil=True)
def locate_chunks(data, base, used, offsets, starts, ends, encodings, counts, states):
    """Locate and check chunks. `data` is the content of their file from position `base`.

    Fills the start and end of each chunk's data in `data`, its encoding, its number of samples and its state.
    """
    memory = np.int64(data.ctypes.data)
    for chunk in range(len(offsets)):
        starts[chunk], ends[chunk], encodings[chunk], counts[chunk] = 0, 0, 0, 0
        at, end = memory + offsets[chunk] - base, memory + used
        if offsets[chunk] < max(base, FILE_HEADER) or at >= end:
            states[chunk] = OUTSIDE
            continue
        length, start = read_varint(at, end)
        if start < 0 or length > U64(MAX_CHUNK_BYTES) or start + np.int64(length) + 5 > end:
            states[chunk] = CUT_OFF
            continue
        stop = start + 1 + np.int64(length)
        if crc32c(start, stop - start) != load_u32_big(stop):
            states[chunk] = WRONG_CHECKSUM
            continue
        encodings[chunk] = load_u8(start)
        starts[chunk], ends[chunk] = start + 1 - memory, stop - memory
        if encodings[chunk] == 2 or encodings[chunk] == 3:
            states[chunk] = NATIVE_HISTOGRAM
        elif encodings[chunk] != ENCODING_XOR:
            states[chunk] = UNKNOWN_ENCODING
        elif length < U64(2):
            states[chunk] = MALFORMED
        else:
            counts[chunk] = (np.int64(load_u8(start + 1)) << 8) | np.int64(load_u8(start + 2))
            states[chunk] = XOR


@njit(cache=True)
def _peek(memory, bit):
    """At least 57 bits from a position, highest bit first."""
    return load_u64_big(memory + (bit >> 3)) << U64(bit & 7)


@njit(cache=True)
def _take(memory, bit, count):
    """`count` bits, 1 to 64, as the lowest bits of a word."""
    word = _peek(memory, bit)
    if count > 57:
        # The bits shifted in at the right are in the byte after the word.
        word |= U64(load_u8(memory + (bit >> 3) + 8)) >> U64(8 - (bit & 7))
    return word >> U64(64 - count)


@njit(cache=True)
def _take_varint(memory, bit, end):
    """A varint at any bit position: (value, position after it); the position is -1 if it is cut off or too long."""
    value, shift = U64(0), U64(0)
    while bit + 8 <= end and shift < U64(70):
        byte = _take(memory, bit, 8)
        bit += 8
        value |= (byte & U64(0x7F)) << shift
        if byte < U64(0x80):
            return value, bit
        shift += U64(7)
    return U64(0), -1


@njit(cache=True)
def _signed(bits, width):
    """A change of step. The range has one more positive number than negative ones."""
    number = np.int64(bits)
    return number - (np.int64(1) << width) if number > np.int64(1) << (width - 1) else number


@njit(cache=True)
def _take_step_change(memory, bit):
    prefix = _peek(memory, bit)
    if prefix >> U64(63) == U64(0):
        return np.int64(0), bit + 1
    if prefix >> U64(62) == U64(0b10):
        return _signed((prefix >> U64(48)) & U64(0x3FFF), 14), bit + 16
    if prefix >> U64(61) == U64(0b110):
        return _signed((prefix >> U64(44)) & U64(0x1FFFF), 17), bit + 20
    if prefix >> U64(60) == U64(0b1110):
        return _signed((prefix >> U64(40)) & U64(0xFFFFF), 20), bit + 24
    return np.int64(_take(memory, bit + 4, 64)), bit + 68


@njit(cache=True)
def read_xor(at, stop, count, times, values, n):
    """Write the samples of a chunk to the columns from index `n`. Returns whether the chunk is valid."""
    bit, end = np.int64(16), 8 * (stop - at)
    zigzag, bit = _take_varint(at, bit, end)
    if bit < 0 or bit + 64 > end:
        return count == 0
    time = np.int64(zigzag >> U64(1)) ^ -np.int64(zigzag & U64(1))
    value = _take(at, bit, 64)
    bit += 64
    step = np.int64(0)
    # The first window is the complete word, which Prometheus uses in a reopened chunk of equal values.
    leading, width = np.int64(0), np.int64(64)
    for sample in range(count):
        if sample == 1:
            raw, bit = _take_varint(at, bit, end)
            if bit < 0:
                return False
            step = np.int64(raw)
        elif sample > 1:
            change, bit = _take_step_change(at, bit)
            step += change
        if sample > 0:
            time += step
            control = _peek(at, bit)
            if control >> U64(63) == U64(0):
                bit += 1
            else:
                if control >> U64(62) == U64(0b10):
                    bit += 2
                else:
                    leading = np.int64((control >> U64(57)) & U64(0x1F))
                    width = np.int64((control >> U64(51)) & U64(0x3F))
                    bit += 13
                    if width == 0:
                        width = np.int64(64)
                    if leading + width > 64:
                        return False
                value ^= _take(at, bit, width) << U64(64 - leading - width)
                bit += width
            if bit > end:
                return False
        times[n + sample] = time
        values[n + sample] = value
    return True


@njit(cache=True, nogil=True)
def decode_chunks(data, chunks, deleted, rows, row_base, columns, n):
    """Decode located chunks to the columns, after the `n` samples in them. Returns the new number of samples.

    `chunks` is (starts, ends, counts, states), `rows` the series of each chunk, of which `row_base` becomes 0.
    `deleted` is (index of the first interval of each series and of the next series, earliest, latest): samples within
    an interval of their series are skipped. A malformed chunk adds no samples, and its state is set. Values are bits.
    """
    starts, ends, counts, states = chunks
    first_interval, earliest, latest = deleted
    out_rows, times, values = columns
    memory = np.int64(data.ctypes.data)
    for chunk in range(len(starts)):
        if states[chunk] != XOR:
            continue
        count = counts[chunk]
        if not read_xor(memory + starts[chunk], memory + ends[chunk], count, times, values, n):
            states[chunk] = MALFORMED
            continue
        row = rows[chunk]
        first, stop = first_interval[row], first_interval[row + 1]
        if first < stop:
            kept = n
            for sample in range(n, n + count):
                hidden = False
                for interval in range(first, stop):
                    hidden = hidden or earliest[interval] <= times[sample] <= latest[interval]
                if not hidden:
                    times[kept], values[kept] = times[sample], values[sample]
                    kept += 1
            count = kept - n
        out_rows[n : n + count] = row - row_base
        n += count
    return n
