"""Parquet files in parts: row groups, each of which can be read alone."""

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
    """Some row groups of a file."""

    file: SourceFile
    groups: tuple[int, ...]

    @property
    def uri(self) -> str:
        """What it is a part of."""
        return self.file.uri

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """What must not change."""
        return (self.file,)

    def to_json(self) -> str:
        """As it stands in a part's row."""
        return json.dumps({"kind": "parquet", "uri": self.uri, **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> "ParquetPart":
        """What `to_json` wrote, read as JSON."""
        return cls(SourceFile(**value["file"]), tuple(value["groups"]))


def parquet_mapping(mapping: Mapping[str, Any]) -> ParquetMapping:
    """The mapping that an operator gave; without one, that of our own exports."""
    return ParquetMapping.from_table(mapping) if mapping else EXPORT_MAPPING


def cut_parquet(file: SourceFile, mapping: ParquetMapping, part_bytes: int) -> list[ParquetPart]:
    """The parts of a file: row groups that together have about `part_bytes` before compression. Raises what is wrong
    with the file, or with the mapping for it.
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
    most = 2 * spec.packed_bytes or None
    mapping = parquet_mapping(spec.mapping)
    blocks = read_row_groups(system, path, part.groups, mapping, ROWS_PER_CHUNK, max_label_bytes=most)
    return block_chunks(blocks, spec.packed_bytes)
