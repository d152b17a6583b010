"""What a part of an import reads, whichever format it is: its row in the store, and its chunks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from strandline.jobs.importing.block_parts import BlockPart, block_part_chunks
from strandline.jobs.importing.chunks import Chunk, text_chunks
from strandline.jobs.importing.parquet_parts import ParquetPart, parquet_chunks
from strandline.jobs.importing.parsers import text_parser
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.importing.text_parts import TextPart, text_reader
from strandline.jobs.sources.files import SourceUnreachable, require_unchanged

PartSource = TextPart | ParquetPart | BlockPart


def part_source(text: str) -> PartSource:
    """What a part's row says that it reads."""
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
    """The chunks of a part, while what they are read from is open. Raises `SourceUnreachable` where the file system
    fails meanwhile.
    """
    try:
        match source:
            case TextPart():
                with text_reader(source.of.file) as reader:
                    parse = text_parser(spec, source.of)
                    yield text_chunks(reader, source, spec.rules, parse, spec.packed_bytes)
            case ParquetPart():
                yield parquet_chunks(source, spec)
            case BlockPart():
                yield block_part_chunks(source, spec)
    except OSError as error:
        raise SourceUnreachable(
            f"{source.uri} can't be read on: {error}", remedy="It is tried again by itself; check the file system"
        ) from error


def require_same_files(source: PartSource) -> None:
    """Raises `SourceChanged` unless all that a part reads is as it was when the job was planned."""
    for file in source.files:
        require_unchanged(file)
