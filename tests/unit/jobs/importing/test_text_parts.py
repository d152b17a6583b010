"""Parts of text files: what each reads, and which files can't be divided."""

import gzip
from pathlib import Path

import pytest

from strandline.jobs.importing.part_sources import part_source
from strandline.jobs.importing.text_parts import (
    TO_THE_END,
    PlannedFile,
    TextPart,
    cut_text,
    first_line,
    start_of,
    text_reader,
    text_start,
)
from strandline.jobs.sources.files import SourceFile, identify
from strandline.jobs.sources.source_errors import SourceUnusable
from strandline.jobs.sources.text_records import RecordRules, read_chunks

pytestmark = pytest.mark.unit

RULES = RecordRules(chunk_bytes=10, max_record=100)
QUOTED = RecordRules(chunk_bytes=10, max_record=100, quote=ord('"'))


def written(folder: Path, data: bytes, name: str = "file.csv") -> SourceFile:
    path = folder / name
    path.write_bytes(data)
    return identify(str(path))


def read(parts: list[TextPart], rules: RecordRules) -> bytes:
    found = b""
    for part in parts:
        assert part_source(part.to_json()) == part
        with text_reader(part.of.file) as reader:
            position = start_of(reader, part, rules)
            for chunk in read_chunks(reader, position, part.end, rules):
                found += b"".join(data for _, data in chunk.pieces)
    return found


@pytest.mark.parametrize("part_bytes", [1, 3, 7, 20, 1_000])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_every_line_after_the_header_is_read_once(
    tmp_path: Path, part_bytes: int, mark: bytes, line_end: bytes
) -> None:
    header, lines = b"time,value", line_end.join([b"1,2", b"", b"3,4", b"55,66"])
    file = written(tmp_path, mark + header + line_end + lines)
    with text_reader(file) as reader:
        assert text_start(reader) == len(mark)
        line, begins = first_line(reader, text_start(reader), RULES)
    assert line == header
    assert read(cut_text(PlannedFile(file, begins, ("time", "value")), part_bytes, RULES), RULES) == lines


def test_a_compressed_file_is_one_part(tmp_path: Path) -> None:
    text = b"header\n" + b"line\n" * 100
    file = written(tmp_path, gzip.compress(text), "file.csv.gz")
    with text_reader(file) as reader:
        _, begins = first_line(reader, 0, RULES)
    planned = PlannedFile(file, begins)
    parts = cut_text(planned, 10, RULES)
    assert parts == [TextPart(planned, 7, TO_THE_END)]
    assert read(parts, RULES) == b"line\n" * 100


@pytest.mark.parametrize("part_bytes", [1, 2, 5, 100])
def test_fields_over_several_lines_stay_whole(tmp_path: Path, part_bytes: int) -> None:
    text = b'a,"1\n2"\nb,"\n\n""\n"\nc,3\n'
    file = written(tmp_path, text)
    assert read(cut_text(PlannedFile(file, 0), part_bytes, QUOTED), QUOTED) == text


def test_a_file_that_ends_within_quotes_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, b'a,"1\nb,2\n')
    with pytest.raises(SourceUnusable, match="ends within quotes"):
        cut_text(PlannedFile(file, 0), 100, QUOTED)


def test_an_empty_file_has_no_header_and_no_parts(tmp_path: Path) -> None:
    file = written(tmp_path, b"")
    with text_reader(file) as reader:
        assert first_line(reader, text_start(reader), RULES) == (b"", 0)
    assert cut_text(PlannedFile(file, 0), 100, RULES) == []


def test_a_first_line_that_is_too_long_is_not_taken_for_a_header(tmp_path: Path) -> None:
    file = written(tmp_path, b"x" * 200)
    with text_reader(file) as reader, pytest.raises(ValueError, match="more than 100 bytes"):
        first_line(reader, 0, RULES)
