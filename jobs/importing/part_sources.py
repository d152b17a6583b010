"""The source of a part of an import, independent of its format: its stored form, and its chunks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.jobs.importing.block_parts import BlockPart, block_part_chunks
from strandline.jobs.importing.chunks import Chunk, text_chunks
from strandline.jobs.importing.parquet_parts import ParquetPart, parquet_chunks
from strandline.jobs.importing.parsers import text_parser
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.importing.text_parts import TextPart, text_reader
from strandline.jobs.sources.files import require_unchanged
from strandline.jobs.sources.source_errors import source_errors

PartSource = TextPart | ParquetPart | BlockPart


def part_source(text: str) -> PartSource:
    """Parse the source in a part's row."""
    value = json.loads(text)
    match value.pop("kind"):
        case "parquet":
            return ParquetPart.from_value(value)
        case "block":
            return BlockPart.from_value(value)
        case _:
            return TextPart.from_value(value)


@contextmanager
def chunks_of(source: PartSource, spec: ImportSpec) -> Iterator[Iterator[Chunk]]:
    """A context with the chunks of a part, which keeps the source open. Raises `SourceUnreachable` or
    `SourceUnusable` if the file system fails meanwhile.
    """
    with source_errors(source.uri):
        match source:
            case TextPart():
                with text_reader(source.of.file) as reader:
                    parse = text_parser(spec, source.of)
                    yield text_chunks(reader, source, spec.rules, parse, spec.packed_bytes)
            case ParquetPart():
                yield parquet_chunks(source, spec)
            case BlockPart():
                yield block_part_chunks(source, spec)


def require_same_files(source: PartSource) -> None:
    """Raises `SourceChanged` unless the files of a part are the same as when the job was planned."""
    for file in source.files:
        require_unchanged(file)
