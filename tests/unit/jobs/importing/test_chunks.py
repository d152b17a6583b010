"""Chunks of text: the content of their blocks, and the counts of records that are too long for parsers."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from strandline.jobs.bad_records import BadRecord, BadRecords
from strandline.jobs.formats.csv_options import CsvOptions, CsvValue
from strandline.jobs.formats.csv_rows import parse_csv
from strandline.jobs.formats.time_formats import UnixTime
from strandline.jobs.importing.chunks import TOO_LONG, Chunk, text_chunks
from strandline.jobs.importing.text_parts import PlannedFile, TextPart
from strandline.jobs.landing.packing import pack
from strandline.jobs.sample_block import SampleBlock
from strandline.jobs.sources.files import SourceFile
from strandline.jobs.sources.text_records import RecordRules
from strandline.time_range import ALL_TIMES
from support.sample_blocks import block_of

pytestmark = pytest.mark.unit

RULES = RecordRules(chunk_bytes=12, max_record=10)


class Text:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_at(self, count: int, offset: int) -> bytes:
        return self.data[offset : offset + count]


def parse(data: npt.NDArray[np.uint8], offset: int) -> SampleBlock:
    """A parser with one sample per line, whose value is the line's number; lines that begin with ? are bad."""
    lines = data.tobytes().split(b"\n")
    lines = lines[:-1] if not lines[-1] else lines
    good = [(0, number, float(number)) for number, line in enumerate(lines) if not line.startswith(b"?")]
    at, bad = offset, list[BadRecord]()
    for number, line in enumerate(lines, 1):
        if line.startswith(b"?"):
            bad.append(BadRecord(at, number, "a question"))
        at += len(line) + 1
    block = block_of([[("__name__", "m")]], good)
    counts = {"a question": len(bad)} if bad else {}
    return SampleBlock(block.series, block.row, block.times, block.values, len(lines), BadRecords(counts, tuple(bad)))


def chunks(text: bytes, rules: RecordRules = RULES) -> Sequence[Chunk]:
    planned = PlannedFile(SourceFile("file", len(text), 0, ""), 0)
    return list(text_chunks(Text(text), TextPart(planned, 0, len(text)), rules, parse))


def test_records_lines_and_positions_add_up() -> None:
    text = b"one\ntwo\nthree\nfour\nfive"
    found = chunks(text)
    assert len(found) > 1
    assert sum(chunk.records for chunk in found) == sum(chunk.lines for chunk in found) == 5
    assert sum(len(block.row) for chunk in found for _, block in chunk.blocks) == 5
    assert [chunk.position for chunk in found][-1] == len(text)
    assert [offset for chunk in found for offset, _ in chunk.blocks] == [0, *(c.position for c in found[:-1])]


def test_bad_records_have_their_line_in_the_part_and_their_offset_in_the_file() -> None:
    found = chunks(b"one\n?two\nthree\nfour\n?five\nsix\n")
    examples = BadRecords.joined([chunk.bad for chunk in found]).examples
    assert [(example.offset, example.line) for example in examples] == [(4, 2), (20, 5)]


def test_a_record_that_is_too_long_is_counted_as_bad_between_its_neighbours() -> None:
    text = b"one\n" + b"x" * 50 + b"\n?two\n" + b"y" * 11 + b"\n"
    found = chunks(text)
    joined = BadRecords.joined([chunk.bad for chunk in found])
    assert [(example.offset, example.line) for example in joined.examples] == [(4, 2), (55, 3), (60, 4)]
    assert joined.examples[0].reason.startswith(TOO_LONG)
    assert "jobs.max_record" in joined.examples[0].reason
    assert sum(chunk.records for chunk in found) == sum(chunk.lines for chunk in found) == 4
    assert joined.total == 3


CONSTANTS = {f"constant_{position}": "x" * 40 for position in range(12)}
OPTIONS = CsvOptions(
    columns=3,
    values=(CsvValue(2, "m"),),
    time_column=1,
    time=UnixTime("ms"),
    labels=(("host", 0),),
    constants=tuple(CONSTANTS.items()),
)


def landed(text: bytes, packed_bytes: int, chunk_bytes: int = 1 << 20) -> list[Chunk]:
    planned = PlannedFile(SourceFile("file", len(text), 0, ""), 0)
    rules = RecordRules(chunk_bytes=chunk_bytes, max_record=100)

    def parse(data: npt.NDArray[np.uint8], offset: int) -> SampleBlock:
        return parse_csv(data, offset, OPTIONS, max_bytes=packed_bytes or None)

    return list(text_chunks(Text(text), TextPart(planned, 0, len(text)), rules, parse, packed_bytes))


def samples_of(found: Sequence[Chunk]) -> list[tuple[bytes, int, float]]:
    return [
        (block.series.labels[slice(*block.series.starts[row : row + 2])].tobytes(), int(time), float(value))
        for chunk in found
        for _, block in chunk.blocks
        for row, time, value in zip(block.row, block.times, block.values, strict=True)
    ]


def test_short_rows_with_long_labels_become_chunks_of_bounded_size_with_the_same_samples() -> None:
    rows = [b"h%d,%d,%d" % (row, 1_800_000_000_000 + row, row) for row in range(3_000)]
    rows[1_500] = b"wrong"
    rows[2_000] = b"y" * 200
    text = b"\n".join(rows)
    whole, found = landed(text, 0), landed(text, 20_000)
    assert len(whole) == 1
    assert samples_of(found) == samples_of(whole)
    assert sum(chunk.records for chunk in found) == sum(chunk.lines for chunk in found) == len(rows)
    assert [chunk.position for chunk in found] == sorted(chunk.position for chunk in found)
    assert found[-1].position == len(text)
    for chunk in found:
        ((offset, block),) = chunk.blocks
        assert sum(len(record.value) for record in pack(block, 2, ALL_TIMES, offset=offset).records) < 20_000
        # Columns grow fourfold, so the labels of a block have room for at most eight times as much.
        assert len(block.series.labels) <= max(8 * 20_000, 1 << 18)
    for field in ("offset", "line"):
        assert [getattr(example, field) for example in joined(found).examples] == [
            getattr(example, field) for example in joined(whole).examples
        ]


def joined(found: Sequence[Chunk]) -> BadRecords:
    return BadRecords.joined([chunk.bad for chunk in found])


def test_a_reader_that_starts_again_finds_the_same_chunks() -> None:
    text = b"".join(b"h%d,%d,1\n" % (row % 700, 1_800_000_000_000 + row * 60_000) for row in range(4_000))
    assert [chunk.position for chunk in landed(text, 9_000, 50_000)] == [
        chunk.position for chunk in landed(text, 9_000, 50_000)
    ]
    assert samples_of(landed(text, 9_000, 50_000)) == samples_of(landed(text, 0, 50_000))
