"""Text files in parts: byte ranges, each of which can be read alone."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from strandline.jobs.sources.compressed import CompressedReader, compression_of
from strandline.jobs.sources.files import SourceFile, SourceUnusable, open_file
from strandline.jobs.sources.text_records import ByteReader, RecordRules, first_record, quote_parities, read_chunks

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
TO_THE_END: Final = 2**63 - 1
"""Where a part ends whose file has an unknown length: a compressed one."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file as it was when the job was planned: where its records begin, the names in its first row if it is CSV, and
    how many lines of it are a header, which line numbers count but records don't.
    """

    file: SourceFile
    begins: int
    header: tuple[str, ...] = ()
    header_lines: int = 0


@dataclass(frozen=True, slots=True)
class TextPart:
    """The records of a file that begin in `[start, end)`. `in_quotes`: whether `start` lies within quotes."""

    of: PlannedFile
    start: int
    end: int
    in_quotes: bool = False

    @property
    def uri(self) -> str:
        """What it is a part of."""
        return self.of.file.uri

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """What must not change."""
        return (self.of.file,)

    def to_json(self) -> str:
        """As it stands in a part's row."""
        return json.dumps({"kind": "text", "uri": self.uri, **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> "TextPart":
        """What `to_json` wrote, read as JSON."""
        of = value["of"]
        planned = PlannedFile(SourceFile(**of["file"]), of["begins"], tuple(of["header"]), of.get("header_lines", 0))
        return cls(planned, value["start"], value["end"], value["in_quotes"])


@contextmanager
def text_reader(file: SourceFile) -> Iterator[ByteReader]:
    """A file's text, unpacked."""
    compression = compression_of(file.uri)
    if compression is not None:
        with CompressedReader(file, compression) as reader:
            yield reader
    else:
        with open_file(file) as plain:
            yield plain


def text_start(reader: ByteReader) -> int:
    """Where the text of a file begins: behind a byte-order mark, if there is one."""
    return len(BYTE_ORDER_MARK) if reader.read_at(len(BYTE_ORDER_MARK), 0) == BYTE_ORDER_MARK else 0


def first_line(reader: ByteReader, start: int, rules: RecordRules) -> tuple[bytes, int]:
    """The record that begins at `start`, without its line end, and where the next one begins. Raises `ValueError` if
    it is too long.
    """
    chunk = next(read_chunks(reader, start, TO_THE_END, RecordRules(1, rules.max_record, rules.quote)), None)
    if chunk is None:
        return b"", start
    if chunk.too_long:
        raise ValueError(f"the first line has more than {rules.max_record} bytes")
    ((_, line),) = chunk.pieces
    return line.rstrip(b"\r\n"), chunk.end


def cut_text(planned: PlannedFile, part_bytes: int, rules: RecordRules) -> list[TextPart]:
    """The parts of a file: of `part_bytes` each, or one where it is compressed. Where quotes may hold newlines, the
    file is read once to find which parts begin within them.
    """
    file = planned.file
    if compression_of(file.uri) is not None:
        return [TextPart(planned, planned.begins, TO_THE_END)]
    cuts = [*range(planned.begins, file.size, part_bytes), file.size]
    parities = [False] * len(cuts)
    if rules.quote >= 0:
        with open_file(file) as reader:
            parities = quote_parities(reader, planned.begins, cuts, rules.quote)
        if parities[-1]:
            raise SourceUnusable(
                f"{file.uri} ends within quotes",
                remedy="Close the quotes, or leave `multiline` out if no field holds a newline",
            )
    return [
        TextPart(planned, first, last, within) for (first, last), within in zip(pairwise(cuts), parities, strict=False)
    ]


def start_of(reader: ByteReader, part: TextPart, rules: RecordRules) -> int:
    """Where a part's first record begins."""
    if part.start == part.of.begins:
        return part.start
    return first_record(reader, part.start, part.end, rules, in_quotes=part.in_quotes)
