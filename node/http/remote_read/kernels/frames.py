"""Frames of a streamed answer: a varint with the message's length, its CRC-32C as a big-endian u32, the message.

ChunkedReadResponse { repeated ChunkedSeries chunked_series = 1; int64 query_index = 2; }
ChunkedSeries       { repeated Label labels = 1; repeated Chunk chunks = 2; }
Chunk               { int64 min_time_ms = 1; int64 max_time_ms = 2; Encoding type = 3; bytes data = 4; }
"""

import numpy as np
from numba import njit

from strandline.kernels.crc32c import crc32c
from strandline.kernels.machine import load_u64, store_u8
from strandline.node.http.remote_read.kernels.labels import put_labels
from strandline.node.http.remote_read.kernels.words import WORD, load_i64, move_bytes, put_varint, varint_length
from strandline.node.http.remote_read.kernels.xor_chunks import CHUNK_BYTES, CHUNK_SAMPLES, put_chunk
from strandline.wire.kernels.split import copy_bytes

U64 = np.uint64
TAG_SERIES, TAG_QUERY = np.uint8(0x0A), np.uint8(0x10)
TAG_CHUNK = np.uint8(0x12)
TAG_EARLIEST, TAG_LATEST, TAG_ENCODING, TAG_DATA = np.uint8(0x08), np.uint8(0x10), np.uint8(0x18), np.uint8(0x22)
ENCODING_XOR = np.uint8(1)

# Around a chunk's data: its tag and length, two times, the encoding, the data's tag and length.
CHUNK_FIELD_BYTES = CHUNK_BYTES + 4 + 22 + 2 + 4
# Before a series' content: the frame's length and checksum, the series' tag and length. After it: the query's index.
HEADER, FOOTER = 10 + 4 + 1 + 10, 11


@njit(cache=True)
def _put_chunk_field(at, times, values, count, scratch):
    data_length = put_chunk(scratch, times, values, count) - scratch
    earliest, latest = load_u64(times), load_u64(times + WORD * (count - 1))
    content = 5 + varint_length(earliest) + varint_length(latest) + varint_length(U64(data_length)) + data_length
    store_u8(at, TAG_CHUNK)
    at = put_varint(at + 1, U64(content))
    store_u8(at, TAG_EARLIEST)
    at = put_varint(at + 1, earliest)
    store_u8(at, TAG_LATEST)
    at = put_varint(at + 1, latest)
    store_u8(at, TAG_ENCODING)
    store_u8(at + 1, ENCODING_XOR)
    store_u8(at + 2, TAG_DATA)
    at = put_varint(at + 3, U64(data_length))
    copy_bytes(at, scratch, data_length)
    return at + data_length


@njit(cache=True)
def _close_frame(frame, content, end, query):
    """Write the header of a frame, and move a series' content up to it. Returns the position after the frame."""
    length = end - content
    footer = 1 + varint_length(U64(query)) if query else 0
    message = 1 + varint_length(U64(length)) + length + footer
    checksum_at = put_varint(frame, U64(message))
    start = checksum_at + 4
    to = start + 1 + varint_length(U64(length))
    move_bytes(to, content, length)
    store_u8(start, TAG_SERIES)
    put_varint(start + 1, U64(length))
    if query:
        store_u8(to + length, TAG_QUERY)
        put_varint(to + length + 1, U64(query))
    checksum = crc32c(start, message)
    for byte in range(4):
        store_u8(checksum_at + byte, np.uint8((checksum >> U64(24 - 8 * byte)) & U64(0xFF)))
    return start + message


@njit(cache=True, nogil=True)
def write_frames(columns, n_series, query, series, sample, out, enough, frame_limit):
    """Write frames from a sample of a series on, until everything or at least `enough` bytes are written.

    Returns (series, sample, number of bytes): where to continue. A frame has one series, or a part of a series whose
    chunks would exceed `frame_limit`. `out` must have room for `enough`, for a frame with the longest labels, and, at
    its end, for a chunk that is being encoded.
    """
    offsets, keys, first_sample, times, values = columns
    start = np.int64(out.ctypes.data)
    scratch = start + len(out) - CHUNK_BYTES
    at = start
    while series < n_series and at - start < enough:
        entry = WORD * series
        end_sample = load_i64(first_sample + entry + WORD)
        content = at + HEADER
        chunks = put_labels(content, keys + load_i64(offsets + entry), keys + load_i64(offsets + entry + WORD))
        end = chunks
        while sample < end_sample and (end == chunks or end - chunks + CHUNK_FIELD_BYTES <= frame_limit):
            count = min(CHUNK_SAMPLES, end_sample - sample)
            end = _put_chunk_field(end, times + WORD * sample, values + WORD * sample, count, scratch)
            sample += count
        at = _close_frame(at, content, end, query)
        if sample == end_sample:
            series += 1
    return series, sample, at - start
