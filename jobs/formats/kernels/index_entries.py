"""Parses the sections of a Prometheus block's index that have an entry for each series, symbol or postings list.

Series entry    length <uvarint>, content, CRC-32C of the content <4 bytes>. The content: number of labels, then for
                each the references of name and value in the symbol table; number of chunks, then for each its
                start, its duration, and its reference. Times and references are deltas to the previous chunk. All are
                varints. Entries begin at multiples of 16 bytes in version 2, anywhere in version 1.
Symbol          length <uvarint>, text. References are numbers in version 2, positions in the index in version 1.
Postings entry  number of strings (2) <uvarint>, name and value as symbols, position of the list <uvarint>.

Every length is checked before it is used. `data` must have a readable word after its content.
"""

from enum import IntEnum

import numpy as np
from numba import njit

from strandline.jobs.kernels.label_sets import add_label, labels_room, put_labels
from strandline.kernels.crc32c import crc32c
from strandline.kernels.machine import load_u8
from strandline.kernels.xxh3 import hash_at
from strandline.wire.kernels.labels import CANONICAL, NO_LABELS
from strandline.wire.kernels.protobuf import BAD, read_length, read_varint

U64 = np.uint64
VERSION_2 = 2
MIN_CHUNK_BYTES = 3  # Three varints.


class EntryFault(IntEnum):
    """Why an entry of a series is invalid, in addition to the verdicts about its labels."""

    CUT_OFF = 101
    WRONG_CHECKSUM = 102
    MALFORMED = 103


CUT_OFF, WRONG_CHECKSUM = int(EntryFault.CUT_OFF), int(EntryFault.WRONG_CHECKSUM)
MALFORMED = int(EntryFault.MALFORMED)


@njit(cache=True)
def load_u32_big(at):
    """The big-endian 32-bit number at an address."""
    return (
        (U64(load_u8(at)) << U64(24))
        | (U64(load_u8(at + 1)) << U64(16))
        | (U64(load_u8(at + 2)) << U64(8))
        | U64(load_u8(at + 3))
    )


@njit(cache=True)
def _from_zigzag(number):
    return np.int64(number >> U64(1)) ^ -np.int64(number & U64(1))


@njit(cache=True, nogil=True)
def find_symbols(table, length, symbol_offsets):
    """Fill `symbol_offsets` with the position of each symbol's length in the table. Returns the number of symbols
    found.
    """
    base = np.int64(table.ctypes.data)
    at, end = base + 4, base + length
    for symbol in range(len(symbol_offsets)):
        symbol_offsets[symbol] = at - base
        size, text = read_length(at, end)
        if text < 0:
            return symbol
        at = text + size
    return len(symbol_offsets)


@njit(cache=True)
def _symbol(reference, symbols):
    """The length and address of a symbol's text; the address is `BAD` if the symbol does not exist."""
    table, table_end, symbol_offsets, version, table_position = symbols
    if version == VERSION_2:
        if reference >= U64(len(symbol_offsets)):
            return 0, BAD
        at = table + np.int64(symbol_offsets[reference])
    else:
        if reference < U64(table_position + 4) or reference >= U64(table_position + (table_end - table)):
            return 0, BAD
        at = table + np.int64(reference) - table_position
    return read_length(at, table_end)


@njit(cache=True)
def _content(at, end):
    """The start and end of an entry's content, and its fault or `CANONICAL`."""
    length, start = read_varint(at, end)
    if start < 0 or length > U64(end - start) or np.int64(length) + 4 > end - start:
        return at, at, CUT_OFF
    content_end = start + np.int64(length)
    if crc32c(start, content_end - start) != load_u32_big(content_end):
        return at, at, WRONG_CHECKSUM
    return start, content_end, CANONICAL


@njit(cache=True)
def _gather_labels(at, end, symbols, limits, spans):
    """Collect the labels of an entry: (fault or verdict, number of labels, position after them)."""
    labels, at = read_varint(at, end)
    if at < 0 or labels > U64(end - at):
        return MALFORMED, 0, at
    verdict, count, names_length = CANONICAL, 0, 0
    for _label in range(np.int64(labels)):
        name_reference, at = read_varint(at, end)
        if at < 0:
            return MALFORMED, 0, at
        value_reference, at = read_varint(at, end)
        if at < 0:
            return MALFORMED, 0, at
        name_length, name = _symbol(name_reference, symbols)
        value_length, value = _symbol(value_reference, symbols)
        if name < 0 or value < 0:
            return MALFORMED, 0, at
        if verdict == CANONICAL:
            verdict, count, names_length = add_label(
                spans, count, names_length, name, name_length, value, value_length, limits
            )
    if verdict == CANONICAL and count == 0:
        verdict = NO_LABELS
    return verdict, count, at


@njit(cache=True)
def _read_chunks(at, end, chunks, row, segments, offsets, chunk_rows, n_chunks):
    """Append the chunks of an entry. Returns whether they are valid."""
    reference = U64(0)
    for chunk in range(chunks):
        _begin, at = read_varint(at, end)
        if at < 0:
            return False
        _length, at = read_varint(at, end)
        if at < 0:
            return False
        step, at = read_varint(at, end)
        if at < 0:
            return False
        reference = step if chunk == 0 else reference + U64(_from_zigzag(step))
        chunk_rows[n_chunks + chunk] = row
        segments[n_chunks + chunk] = np.int64(reference >> U64(32))
        offsets[n_chunks + chunk] = np.int64(reference & U64(0xFFFFFFFF))
    return True


@njit(cache=True, nogil=True)
def read_entries(data, base, positions, done, symbols, limits, spans, series, n_series, labels, used, chunks, n_chunks):
    """Parse the entries of series until all are read or an output is full.

    Entry i is between `positions[i]` and `positions[i + 1]` of the index, and `base` is the position of `data[0]`.
    Returns (entries done, series, bytes of labels and chunks written), from which to continue with larger outputs.
    `series` is (verdict or fault of each entry, entry of each series, label starts, key low, key high), `chunks` is
    (series, segment, offset).
    """
    outcomes, entries, starts, key_low, key_high = series
    chunk_rows, segments, offsets = chunks
    memory, out = np.int64(data.ctypes.data), np.int64(labels.ctypes.data)
    while done < len(positions) - 1:
        end = memory + positions[done + 1] - base
        at, end, outcome = _content(memory + positions[done] - base, end)
        count, own_chunks = 0, np.int64(0)
        if outcome == CANONICAL:
            outcome, count, at = _gather_labels(at, end, symbols, limits, spans)
        if outcome == CANONICAL:
            own, at = read_varint(at, end)
            if at < 0 or own > U64((end - at) // MIN_CHUNK_BYTES):
                outcome = MALFORMED
            else:
                own_chunks = np.int64(own)
                if n_chunks + own_chunks > len(offsets) or used + labels_room(spans, count) > len(labels):
                    break
                if not _read_chunks(at, end, own_chunks, n_series, segments, offsets, chunk_rows, n_chunks):
                    outcome = MALFORMED
        if outcome == CANONICAL:
            starts[n_series] = used
            labels_end = put_labels(labels, used, spans, count)
            low, high = hash_at(out + used, labels_end - used)
            entries[n_series], key_low[n_series], key_high[n_series] = done, low, high
            used = labels_end
            n_series += 1
            n_chunks += own_chunks
        outcomes[done] = outcome
        done += 1
    starts[n_series] = used
    return done, n_series, used, n_chunks


@njit(cache=True, nogil=True)
def count_chunks(data, base, positions, counts):
    """The number of chunks of each series; 0 for an invalid entry. Does not verify checksums."""
    memory = np.int64(data.ctypes.data)
    for entry in range(len(counts)):
        counts[entry] = 0
        end = memory + positions[entry + 1] - base
        length, at = read_length(memory + positions[entry] - base, end)
        if at < 0:
            continue
        end = at + length
        labels, at = read_varint(at, end)
        if at < 0 or labels > U64(end - at):
            continue
        for _reference in range(2 * np.int64(labels)):
            _, at = read_varint(at, end)
            if at < 0:
                break
        if at < 0:
            continue
        own, at = read_varint(at, end)
        if at >= 0 and own <= U64((end - at) // MIN_CHUNK_BYTES):
            counts[entry] = np.int64(own)


@njit(cache=True, nogil=True)
def find_all_postings(data, used, entries):
    """Search the list of all series, whose name and value are empty, among entries of the postings table.

    Returns (position of the list in the index, bytes read, entries left). The position is -1 if the list is not among
    the complete entries in `data`, and -2 if an entry is malformed.
    """
    base = np.int64(data.ctypes.data)
    at, end = base, base + used
    while entries > 0:
        strings, after = read_varint(at, end)
        if after < 0:
            break
        if strings != U64(2):
            return -2, at - base, entries
        name_length, name = read_length(after, end)
        if name < 0:
            break
        value_length, value = read_length(name + name_length, end)
        if value < 0:
            break
        position, after = read_varint(value + value_length, end)
        if after < 0:
            break
        at = after
        entries -= 1
        if name_length == 0 and value_length == 0:
            return np.int64(position & U64(0x7FFFFFFFFFFFFFFF)), at - base, entries
    return -1, at - base, entries


@njit(cache=True, nogil=True)
def read_tombstones(data, used, references, earliest, latest):
    """Parse tombstones: (number, whether they are valid). The arrays must have room for all of them."""
    base = np.int64(data.ctypes.data)
    at, end, count = base, base + used, 0
    while at < end:
        reference, at = read_varint(at, end)
        if at < 0:
            return count, False
        first, at = read_varint(at, end)
        if at < 0:
            return count, False
        last, at = read_varint(at, end)
        if at < 0:
            return count, False
        references[count] = reference
        earliest[count], latest[count] = _from_zigzag(first), _from_zigzag(last)
        count += 1
    return count, True
