"""Parts of text files: byte ranges, which can be read independently."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from strandline.jobs.sources.compressed import CompressedReader, compression_of
from strandline.jobs.sources.files import SourceFile, open_file
from strandline.jobs.sources.source_errors import SourceUnusable
from strandline.jobs.sources.text_records import ByteReader, RecordRules, first_record, quote_parities, read_chunks

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
TO_THE_END: Final = 2**63 - 1
"""The end of a part of a compressed file, whose uncompressed length is unknown."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file as of the planning of the job: the position of its first record, the fields of its first row if it is CSV,
    and the number of header lines, which count as lines but not as records.
    """

    file: SourceFile
    begins: int
    header: tuple[str, ...] = ()
    header_lines: int = 0


@dataclass(frozen=True, slots=True)
class TextPart:
    """The records of a file that begin in `[start, end)`. `in_quotes` is whether `start` is within quotes."""

    of: PlannedFile
    start: int
    end: int
    in_quotes: bool = False

    @property
    def uri(self) -> str:
        """The URI of the file."""
        return self.of.file.uri

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files that must not change."""
        return (self.of.file,)

    def to_json(self) -> str:
        """The text for the part's row."""
        return json.dumps({"kind": "text", "uri": self.uri, **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> "TextPart":
        """From the parsed JSON of `to_json`."""
        of = value["of"]
        planned = PlannedFile(SourceFile(**of["file"]), of["begins"], tuple(of["header"]), of.get("header_lines", 0))
        return cls(planned, value["start"], value["end"], value["in_quotes"])


@contextmanager
def text_reader(file: SourceFile) -> Iterator[ByteReader]:
    """A reader of a file's text, uncompressed."""
    compression = compression_of(file.uri)
    if compression is not None:
        with CompressedReader(file, compression) as reader:
            yield reader
    else:
        with open_file(file) as plain:
            yield plain


def text_start(reader: ByteReader) -> int:
    """The position of the first text: after the byte-order mark, if there is one."""
    return len(BYTE_ORDER_MARK) if reader.read_at(len(BYTE_ORDER_MARK), 0) == BYTE_ORDER_MARK else 0


def first_line(reader: ByteReader, start: int, rules: RecordRules) -> tuple[bytes, int]:
    """The record at `start`, without its line end, and the position of the next one. Raises `ValueError` if it is too
    long.
    """
    chunk = next(read_chunks(reader, start, TO_THE_END, RecordRules(1, rules.max_record, rules.quote)), None)
    if chunk is None:
        return b"", start
    if chunk.too_long:
        raise ValueError(f"the first line has more than {rules.max_record} bytes")
    ((_, line),) = chunk.pieces
    return line.rstrip(b"\r\n"), chunk.end


def cut_text(planned: PlannedFile, part_bytes: int, rules: RecordRules) -> list[TextPart]:
    """Divide a file into parts of `part_bytes`, or one part if it is compressed. If quoted fields may contain newlines,
    the file is read once to find the parts that begin within quotes.
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
                remedy="Close the quotes, or remove `multiline` if no field contains a newline",
            )
    return [
        TextPart(planned, first, last, within) for (first, last), within in zip(pairwise(cuts), parities, strict=False)
    ]


def start_of(reader: ByteReader, part: TextPart, rules: RecordRules) -> int:
    """The position of a part's first record."""
    if part.start == part.of.begins:
        return part.start
    return first_record(reader, part.start, part.end, rules, in_quotes=part.in_quotes)
