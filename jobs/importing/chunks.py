"""The chunks of a part: what lands in one transaction.

Which samples a chunk has follows from the source's bytes and the spec alone, so that any worker can go on with a part.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from strandline.jobs.bad_records import BadRecord, BadRecords
from strandline.jobs.importing.text_parts import TextPart, start_of
from strandline.jobs.sample_block import SampleBlock
from strandline.jobs.sources.text_records import ByteReader, RecordRules, TextChunk, read_chunks

TOO_LONG = "the record is too long"

TextParser = Callable[[npt.NDArray[np.uint8], int], SampleBlock]
"""Parses whole records that begin at an offset of their file."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The samples of a chunk, in blocks with the offset at which each begins in its source.

    `records` and `bad` count all records of the chunk, those included that no parser has seen. `position` is the place
    behind the chunk.
    """

    blocks: tuple[tuple[int, SampleBlock], ...]
    records: int
    lines: int
    bad: BadRecords
    position: int

    @property
    def nulls(self) -> int:
        """How many values of its good records are null."""
        return sum(block.nulls for _, block in self.blocks)


def text_chunks(reader: ByteReader, part: TextPart, rules: RecordRules, parse: TextParser) -> Iterator[Chunk]:
    """The chunks of a part of a text file."""
    lines = 0
    for text in read_chunks(reader, start_of(reader, part, rules), part.end, rules):
        chunk = _parsed(text, parse, rules, lines)
        lines += chunk.lines
        yield chunk


def block_chunks(blocks: Iterable[SampleBlock]) -> Iterator[Chunk]:
    """The chunks of a binary format whose reader gives blocks of the right size. The position is their number."""
    for number, block in enumerate(blocks, 1):
        yield Chunk(((0, block),), block.records, 0, block.bad, number)


def _parsed(text: TextChunk, parse: TextParser, rules: RecordRules, lines_before: int) -> Chunk:
    blocks: list[tuple[int, SampleBlock]] = []
    bad: list[BadRecords] = []
    records, lines = len(text.too_long), lines_before
    too_long = list(text.too_long)
    for offset, data in text.pieces:
        while too_long and too_long[0] < offset:
            lines += 1
            bad.append(_too_long(too_long.pop(0), lines, rules))
        block = parse(np.frombuffer(data, dtype=np.uint8), offset)
        blocks.append((offset, block))
        bad.append(_in_lines_behind(block.bad, lines))
        records += block.records
        lines += data.count(b"\n") + (not data.endswith(b"\n"))
    for offset in too_long:
        lines += 1
        bad.append(_too_long(offset, lines, rules))
    return Chunk(tuple(blocks), records, lines - lines_before, BadRecords.joined(bad), text.end)


def _too_long(offset: int, line: int, rules: RecordRules) -> BadRecords:
    reason = f"{TOO_LONG}: over {rules.max_record} bytes, see jobs.max_record"
    return BadRecords({reason: 1}, (BadRecord(offset, line, reason),))


def _in_lines_behind(bad: BadRecords, lines: int) -> BadRecords:
    return replace(bad, examples=tuple(replace(one, line=one.line + lines) for one in bad.examples))
