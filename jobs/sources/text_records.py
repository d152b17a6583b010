"""Whole records of a byte range of a text file, in chunks.

A record ends with a newline, or with the file. **It belongs to the range that holds its first byte**: its reader runs
on past the range's end to the end of the record. So ranges can be read alone and in any order, and no two readers have
to join halves.

Where a chunk begins and ends follows from the bytes alone: it begins with a record, and takes all records whose first
byte lies within `chunk_bytes` of it. So a reader that goes on where another one stopped reads the chunks that the other
one would have read.

Where a format allows newlines within quotes, a range has to know whether it begins within quotes (`quote_parities`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from strandline.jobs.sources.kernels.records import count_bytes, find_end, skip_records

_SCAN = 4 << 20
_NO_QUOTE = -1


class ByteReader(Protocol):
    """Bytes of a file at any place. Past its end there are fewer than asked for, or none."""

    def read_at(self, count: int, offset: int) -> bytes:
        """Up to `count` bytes from `offset` on; fewer only at the end of the file."""
        ...


@dataclass(frozen=True, slots=True)
class RecordRules:
    """Within how many bytes the records of a chunk begin, how long a record may be without its newline, and the byte
    between which newlines belong to a record, if there is one.
    """

    chunk_bytes: int = 16 << 20
    max_record: int = 1 << 20
    quote: int = _NO_QUOTE

    def __post_init__(self) -> None:
        if min(self.chunk_bytes, self.max_record) < 1:
            raise ValueError(f"chunks of {self.chunk_bytes} bytes, records of {self.max_record}")


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Records that follow each other, and where the next chunk begins.

    `pieces` are (offset in the file, bytes of whole records): one piece, or several where records between them were
    left out for their length. Those begin at the offsets `too_long`.
    """

    pieces: tuple[tuple[int, bytes], ...]
    too_long: tuple[int, ...]
    end: int


def first_record(reader: ByteReader, start: int, end: int, rules: RecordRules, *, in_quotes: bool = False) -> int:
    """Where the first record begins that belongs to `[start, end)`; `end` if none does. `in_quotes` says whether the
    range begins within quotes.
    """
    if start == 0 or (reader.read_at(1, start - 1) == b"\n" and not in_quotes):
        return start
    return _behind_record(reader, start, end, rules.quote, in_quotes=in_quotes)


def read_chunks(reader: ByteReader, position: int, end: int, rules: RecordRules) -> Iterator[TextChunk]:
    """The chunks of all records that begin in `[position, end)`. A record begins at `position`."""
    while position < end:
        chunk = _read_chunk(reader, position, end, rules)
        if chunk is None:
            return
        yield chunk
        position = chunk.end


def quote_parities(reader: ByteReader, start: int, cuts: Sequence[int], quote: int) -> list[bool]:
    """Whether each of these places, in rising order, lies within quotes. `start` lies outside of them."""
    parities: list[bool] = []
    within, at = False, start
    for cut in cuts:
        while at < cut:
            block = reader.read_at(min(_SCAN, cut - at), at)
            if not block:
                break
            within ^= bool(count_bytes(np.frombuffer(block, dtype=np.uint8), quote) % 2)
            at += len(block)
        parities.append(within)
    return parities


def _read_chunk(reader: ByteReader, start: int, end: int, rules: RecordRules) -> TextChunk | None:
    """All records that begin in the next `chunk_bytes`; None at the end of the file."""
    limit = min(end, start + rules.chunk_bytes)
    # The last record may begin just before the limit, and be as long as a record may be.
    asked = limit - start + rules.max_record + 1
    text = reader.read_at(asked, start)
    if not text:
        return None
    data, wanted = np.frombuffer(text, dtype=np.uint8), min(limit - start, len(text))
    pieces: list[tuple[int, bytes]] = []
    too_long: list[int] = []
    at = begun = 0
    while at < wanted:
        at = int(skip_records(data, at, wanted, rules.max_record, rules.quote))
        if at < wanted and len(text) < asked and len(text) - at <= rules.max_record:
            # The last record of the file, without a newline.
            at = len(text)
        if at > begun:
            pieces.append((start + begun, text[begun:at]))
        if at < wanted:
            too_long.append(start + at)
            at = _behind_record(reader, start + at, end, rules.quote) - start
        begun = at
    return TextChunk(tuple(pieces), tuple(too_long), start + at)


def _behind_record(reader: ByteReader, at: int, end: int, quote: int, *, in_quotes: bool = False) -> int:
    """The place behind the record that holds `at`; `end` if it does not end before that. Holds one block at a time."""
    while at < end:
        block = reader.read_at(min(_SCAN, end - at), at)
        if not block:
            return end
        found, in_quotes = find_end(np.frombuffer(block, dtype=np.uint8), in_quotes, quote)
        if found >= 0:
            return at + int(found)
        at += len(block)
    return end
