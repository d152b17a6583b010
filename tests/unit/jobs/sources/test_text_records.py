"""Records of byte ranges: each belongs to the range with its first byte, however a file is divided."""

import csv
import io
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.sources.text_records import RecordRules, first_record, quote_parities, read_chunks

pytestmark = pytest.mark.unit

QUOTE = ord('"')
Found = list[tuple[int, bytes]]


class Bytes:
    """A file, and the largest read of it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.most = data, 0

    def read_at(self, count: int, offset: int) -> bytes:
        self.most = max(self.most, count)
        return self.data[offset : offset + count]


def lines_of(pieces: Sequence[tuple[int, bytes]]) -> Found:
    found: Found = []
    for offset, piece in pieces:
        at = offset
        for line in piece.removesuffix(b"\n").split(b"\n"):
            found.append((at, line))
            at += len(line) + 1
    return found


def read_part(
    data: bytes, start: int, end: int, rules: RecordRules, *, in_quotes: bool = False
) -> tuple[list[tuple[int, bytes]], list[int]]:
    reader = Bytes(data)
    position = first_record(reader, start, end, rules, in_quotes=in_quotes)
    pieces, too_long = list[tuple[int, bytes]](), list[int]()
    for chunk in read_chunks(reader, position, end, rules):
        pieces.extend(chunk.pieces)
        too_long.extend(chunk.too_long)
    return pieces, too_long


def read_in_parts(data: bytes, part_bytes: int, rules: RecordRules) -> tuple[Found, list[int]]:
    lines, too_long = Found(), list[int]()
    for start in range(0, len(data), part_bytes):
        pieces, long = read_part(data, start, min(len(data), start + part_bytes), rules)
        lines += lines_of(pieces)
        too_long += long
    return lines, too_long


def model(data: bytes, max_record: int) -> tuple[Found, list[int]]:
    """All lines with their offsets, and separately those that are too long."""
    lines, too_long, offset = Found(), list[int](), 0
    for line in data.split(b"\n")[: None if data and not data.endswith(b"\n") else -1]:
        if len(line) > max_record:
            too_long.append(offset)
        else:
            lines.append((offset, line))
        offset += len(line) + 1
    return lines, too_long


TEXTS = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))).map(b"\n".join)


@given(
    text=TEXTS,
    ends=st.booleans(),
    part_bytes=st.sampled_from([1, 2, 3, 7, 50, 1000]),
    chunk_bytes=st.sampled_from([1, 2, 5, 64]),
    max_record=st.sampled_from([1, 4, 1000]),
)
def test_the_records_of_a_file_do_not_depend_on_its_division(
    text: bytes, ends: bool, part_bytes: int, chunk_bytes: int, max_record: int
) -> None:
    data = text + (b"\n" if ends else b"")
    assert read_in_parts(data, part_bytes, RecordRules(chunk_bytes, max_record)) == model(data, max_record)


def test_utf8_at_a_boundary_is_not_split() -> None:
    data = "käse\nüber\n日本\n".encode()
    for part_bytes in range(1, len(data) + 1):
        lines, _ = read_in_parts(data, part_bytes, RecordRules(3, 100))
        assert [line.decode() for _, line in lines] == ["käse", "über", "日本"]


@pytest.mark.parametrize("part_bytes", [1, 7, 1000])
def test_an_empty_file_has_no_records(part_bytes: int) -> None:
    assert read_in_parts(b"", part_bytes, RecordRules()) == ([], [])


def test_a_reader_that_continues_where_another_stopped_reads_the_same_chunks() -> None:
    data = b"".join(b"x" * (number * 17 % 40) + b"\n" for number in range(500))
    rules = RecordRules(chunk_bytes=200, max_record=30)
    chunks = list(read_chunks(Bytes(data), 0, len(data), rules))
    assert len(chunks) > 20
    for number, chunk in enumerate(chunks[:-1]):
        assert next(read_chunks(Bytes(data), chunk.end, len(data), rules)) == chunks[number + 1]


def test_a_record_of_many_megabytes_is_too_long_and_never_completely_in_memory() -> None:
    huge = b"x" * (40 << 20)
    data = b"before\n" + huge + b"\nafter\n"
    rules = RecordRules(chunk_bytes=1 << 20, max_record=1 << 20)
    reader = Bytes(data)
    chunks = list(read_chunks(reader, 0, len(data), rules))
    assert [offset for chunk in chunks for offset in chunk.too_long] == [7]
    assert lines_of([piece for chunk in chunks for piece in chunk.pieces]) == [
        (0, b"before"),
        (len(huge) + 8, b"after"),
    ]
    assert reader.most <= 4 << 20


def test_no_two_ranges_within_a_long_record_report_it() -> None:
    data = b"a\n" + b"x" * 1000 + b"\nb\n"
    lines, too_long = read_in_parts(data, 100, RecordRules(chunk_bytes=40, max_record=50))
    assert (lines, too_long) == ([(0, b"a"), (1003, b"b")], [2])


FIELDS = st.text(alphabet='ab,"\n\r ', max_size=6)


@given(rows=st.lists(st.lists(FIELDS, min_size=2, max_size=3)), part_bytes=st.sampled_from([1, 2, 3, 7, 20, 1000]))
def test_newlines_within_quotes_do_not_end_a_record(rows: list[list[str]], part_bytes: int) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    data = text.getvalue().encode()
    rules = RecordRules(chunk_bytes=5, max_record=1000, quote=QUOTE)
    cuts = [*range(0, len(data), part_bytes), len(data)]
    parities = quote_parities(Bytes(data), 0, cuts, QUOTE)
    found = list[list[str]]()
    for (start, end), in_quotes in zip(pairwise(cuts), parities, strict=False):
        pieces, too_long = read_part(data, start, end, rules, in_quotes=in_quotes)
        assert not too_long
        for _, piece in pieces:
            found += csv.reader(io.StringIO(piece.decode(), newline=""))
    assert found == rows
    assert not parities[-1]


def test_quotes_that_are_never_closed_are_detected_at_the_end() -> None:
    data = b'"a","b\n"c"\n'
    assert quote_parities(Bytes(data), 0, [0, 4, len(data)], QUOTE) == [False, False, True]
