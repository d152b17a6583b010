"""The chunks of a part, each of which lands in one transaction.

The samples of a chunk depend on the source's bytes and the spec alone, so that any worker can continue a part.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from strandline.jobs.bad_records import BadRecord, BadRecords
from strandline.jobs.importing.text_parts import TextPart, start_of
from strandline.jobs.landing.block_division import divide_block
from strandline.jobs.sample_block import SampleBlock
from strandline.jobs.sources.text_records import ByteReader, RecordRules, TextChunk, read_chunks

TOO_LONG = "the record is too long"

_NEWLINE = ord("\n")

TextParser = Callable[[npt.NDArray[np.uint8], int], SampleBlock]
"""Parses complete records that begin at an offset of their file: all of them, or as many as fit into a block."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The samples of a chunk, in blocks, each with its offset in the source.

    `records` and `bad` include the records that were too long for a parser. `position` is the position after the chunk.
    If the samples of some records are divided over several chunks, the first one counts the records, and all have the
    position after them.
    """

    blocks: tuple[tuple[int, SampleBlock], ...]
    records: int
    lines: int
    bad: BadRecords
    position: int

    @property
    def nulls(self) -> int:
        """The number of null values in its good records."""
        return sum(block.nulls for _, block in self.blocks)


def text_chunks(
    reader: ByteReader, part: TextPart, rules: RecordRules, parse: TextParser, packed_bytes: int = 0
) -> Iterator[Chunk]:
    """The chunks of a part of a text file, of at most `packed_bytes` before compression, or unlimited if that is 0."""
    lines = 0
    for text in read_chunks(reader, start_of(reader, part, rules), part.end, rules):
        for chunk in _parsed(text, parse, rules, lines, ends_with_block=packed_bytes > 0):
            lines += chunk.lines
            yield from _divided(chunk, packed_bytes)


def block_chunks(blocks: Iterable[SampleBlock], packed_bytes: int = 0) -> Iterator[Chunk]:
    """The chunks of a binary format, whose reader limits the size of blocks. The position is the number of blocks."""
    for number, block in enumerate(blocks, 1):
        yield from _divided(Chunk(((0, block),), block.records, 0, block.bad, number), packed_bytes)


def _divided(chunk: Chunk, packed_bytes: int) -> Iterator[Chunk]:
    """Divide the samples of a chunk of one block over several chunks, if it is too large."""
    if not packed_bytes or not chunk.blocks:
        yield chunk
        return
    ((offset, block),) = chunk.blocks
    for index, part in enumerate(divide_block(block, packed_bytes)):
        if index == 0:
            yield replace(chunk, blocks=((offset, part),))
        else:
            yield Chunk(((offset, part),), 0, 0, BadRecords(), chunk.position)


def _parsed(
    text: TextChunk, parse: TextParser, rules: RecordRules, lines_before: int, *, ends_with_block: bool
) -> Iterator[Chunk]:
    """The records of a text as one chunk, or as one chunk per block of the parser."""
    blocks: list[tuple[int, SampleBlock]] = []
    bad: list[BadRecords] = []
    records, lines, lines_counted = 0, lines_before, lines_before
    too_long = list(text.too_long)
    for offset, data in text.pieces:
        while too_long and too_long[0] < offset:
            records, lines = records + 1, lines + 1
            bad.append(_too_long(too_long.pop(0), lines, rules))
        read = 0
        while read < len(data):
            rest = np.frombuffer(data, dtype=np.uint8, offset=read)
            block = parse(rest, offset + read)
            end = len(data) - block.unread
            blocks.append((offset + read, block))
            bad.append(_with_lines_before(block.bad, lines))
            records += block.records
            lines += data.count(b"\n", read, end) + (data[end - 1] != _NEWLINE)
            read = end
            if ends_with_block:
                yield Chunk(tuple(blocks), records, lines - lines_counted, BadRecords.joined(bad), offset + read)
                blocks, bad, records, lines_counted = [], [], 0, lines
    for offset in too_long:
        records, lines = records + 1, lines + 1
        bad.append(_too_long(offset, lines, rules))
    if records or not ends_with_block:
        yield Chunk(tuple(blocks), records, lines - lines_counted, BadRecords.joined(bad), text.end)


def _too_long(offset: int, line: int, rules: RecordRules) -> BadRecords:
    reason = f"{TOO_LONG}: over {rules.max_record} bytes, see jobs.max_record"
    return BadRecords({reason: 1}, (BadRecord(offset, line, reason),))


def _with_lines_before(bad: BadRecords, lines: int) -> BadRecords:
    return replace(bad, examples=tuple(replace(one, line=one.line + lines) for one in bad.examples))
