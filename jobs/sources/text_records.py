"""Reads the complete records of a byte range of a text file, in chunks.

A record ends with a newline, or with the file. **It belongs to the range that contains its first byte**: its reader
continues past the end of the range to the end of the record. Ranges can therefore be read independently and in any
order.

The boundaries of a chunk depend on the bytes alone: it begins with a record, and contains all records whose first byte
is within `chunk_bytes` of that. A reader that continues where another one has stopped therefore reads the same chunks.

If a format allows newlines within quotes, the state at the start of each range must be known (`quote_parities`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from strandline.jobs.sources.kernels.records import count_bytes, find_end, skip_records

_SCAN_BYTES = 4 << 20
_NO_QUOTE = -1


class ByteReader(Protocol):
    """Random access to the bytes of a file."""

    def read_at(self, count: int, offset: int) -> bytes:
        """`count` bytes from `offset`; fewer only at the end of the file."""
        ...


@dataclass(frozen=True, slots=True)
class RecordRules:
    """The size of the range in which the records of a chunk begin, the maximum length of a record without its newline,
    and the quote, if newlines within quotes belong to a record.
    """

    chunk_bytes: int = 16 << 20
    max_record: int = 1 << 20
    quote: int = _NO_QUOTE

    def __post_init__(self) -> None:
        if min(self.chunk_bytes, self.max_record) < 1:
            raise ValueError(f"chunk_bytes = {self.chunk_bytes} and max_record = {self.max_record} must be positive")


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Consecutive records, and the offset `end` of the next chunk.

    `pieces` are (offset in the file, bytes of complete records). There are several if records between them are skipped
    for their length; the offsets of these are in `too_long`.
    """

    pieces: tuple[tuple[int, bytes], ...]
    too_long: tuple[int, ...]
    end: int


def first_record(reader: ByteReader, start: int, end: int, rules: RecordRules, *, in_quotes: bool = False) -> int:
    """The offset of the first record of the range `[start, end)`; `end` if it has none. `in_quotes` is whether the
    range begins within quotes.
    """
    if start == 0 or (reader.read_at(1, start - 1) == b"\n" and not in_quotes):
        return start
    return _after_record(reader, start, end, rules.quote, in_quotes=in_quotes)


def read_chunks(reader: ByteReader, position: int, end: int, rules: RecordRules) -> Iterator[TextChunk]:
    """The chunks of the records in `[position, end)`. A record must begin at `position`."""
    while position < end:
        chunk = _read_chunk(reader, position, end, rules)
        if chunk is None:
            return
        yield chunk
        position = chunk.end


def quote_parities(reader: ByteReader, start: int, cuts: Sequence[int], quote: int) -> list[bool]:
    """Whether each of the ascending offsets `cuts` is within quotes. `start` is not."""
    parities: list[bool] = []
    within, at = False, start
    for cut in cuts:
        while at < cut:
            block = reader.read_at(min(_SCAN_BYTES, cut - at), at)
            if not block:
                break
            within ^= bool(count_bytes(np.frombuffer(block, dtype=np.uint8), quote) % 2)
            at += len(block)
        parities.append(within)
    return parities


def _read_chunk(reader: ByteReader, start: int, end: int, rules: RecordRules) -> TextChunk | None:
    """The records that begin in the next `chunk_bytes`; None at the end of the file."""
    limit = min(end, start + rules.chunk_bytes)
    # The last record may begin just before the limit, and have the maximum length.
    requested = limit - start + rules.max_record + 1
    text = reader.read_at(requested, start)
    if not text:
        return None
    data, range_bytes = np.frombuffer(text, dtype=np.uint8), min(limit - start, len(text))
    pieces: list[tuple[int, bytes]] = []
    too_long: list[int] = []
    at = piece_start = 0
    while at < range_bytes:
        at = int(skip_records(data, at, range_bytes, rules.max_record, rules.quote))
        if at < range_bytes and len(text) < requested and len(text) - at <= rules.max_record:
            # The last record of the file, without a newline.
            at = len(text)
        if at > piece_start:
            pieces.append((start + piece_start, text[piece_start:at]))
        if at < range_bytes:
            too_long.append(start + at)
            at = _after_record(reader, start + at, end, rules.quote) - start
        piece_start = at
    return TextChunk(tuple(pieces), tuple(too_long), start + at)


def _after_record(reader: ByteReader, at: int, end: int, quote: int, *, in_quotes: bool = False) -> int:
    """The offset after the record that contains `at`, at most `end`. Keeps one block in memory."""
    while at < end:
        block = reader.read_at(min(_SCAN_BYTES, end - at), at)
        if not block:
            return end
        found, in_quotes = find_end(np.frombuffer(block, dtype=np.uint8), in_quotes, quote)
        if found >= 0:
            return at + int(found)
        at += len(block)
    return end
