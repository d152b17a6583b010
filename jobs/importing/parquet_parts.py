"""Parts of Parquet files: row groups, which can be read independently."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from strandline.jobs.formats.parquet import EXPORT_MAPPING, ParquetMapping, check_columns, read_row_groups, row_groups
from strandline.jobs.importing.chunks import Chunk, block_chunks
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.sources.files import SourceFile, file_system

ROWS_PER_CHUNK = 262_144


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """A part: row groups of a file."""

    file: SourceFile
    groups: tuple[int, ...]

    @property
    def uri(self) -> str:
        """The URI of the file."""
        return self.file.uri

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files that must not change."""
        return (self.file,)

    def to_json(self) -> str:
        """The text for the part's row."""
        return json.dumps({"kind": "parquet", "uri": self.uri, **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> "ParquetPart":
        """From the parsed JSON of `to_json`."""
        return cls(SourceFile(**value["file"]), tuple(value["groups"]))


def parquet_mapping(mapping: Mapping[str, Any]) -> ParquetMapping:
    """The given mapping; without one, the mapping of `strandline job export`."""
    return ParquetMapping.from_table(mapping) if mapping else EXPORT_MAPPING


def cut_parquet(file: SourceFile, mapping: ParquetMapping, part_bytes: int) -> list[ParquetPart]:
    """Divide a file into parts: row groups with a total of about `part_bytes` before compression. Raises errors of the
    file, and of the mapping for it.
    """
    system, path = file_system(file.uri)
    check_columns(system, path, mapping)
    parts: list[ParquetPart] = []
    held: list[int] = []
    size = 0
    for group in row_groups(system, path):
        if held and size + group.size > part_bytes:
            parts.append(ParquetPart(file, tuple(held)))
            held, size = [], 0
        held.append(group.number)
        size += group.size
    return [*parts, ParquetPart(file, tuple(held))] if held else parts


def parquet_chunks(part: ParquetPart, spec: ImportSpec) -> Iterator[Chunk]:
    """The chunks of a part."""
    system, path = file_system(part.file.uri)
    max_label_bytes = 2 * spec.packed_bytes or None
    mapping = parquet_mapping(spec.mapping)
    blocks = read_row_groups(system, path, part.groups, mapping, ROWS_PER_CHUNK, max_label_bytes=max_label_bytes)
    return block_chunks(blocks, spec.packed_bytes)
