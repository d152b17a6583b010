"""Parts of Prometheus blocks: ranges of a block's series, which can be read independently."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.fs as pafs

from strandline.jobs.formats.prometheus_blocks import BlockInfo, SeriesRange, find_blocks, plan_ranges, read_range
from strandline.jobs.importing.chunks import Chunk, block_chunks
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.sources.files import SourceFile, file_system, identify
from strandline.jobs.sources.uris import full_uri

SAMPLES_PER_CHUNK = 400_000
_BYTES_PER_SAMPLE = 2
"""Approximate, in a block."""


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A range of a block's series, with the identities of the block's files."""

    uri: str
    block: BlockInfo
    series: SeriesRange
    files: tuple[SourceFile, ...]

    def to_json(self) -> str:
        """The text for the part's row."""
        return json.dumps({"kind": "block", **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_value(cls, value: dict[str, Any]) -> "BlockPart":
        """From the parsed JSON of `to_json`."""
        files = tuple(SourceFile(**one) for one in value["files"])
        return cls(value["uri"], BlockInfo(**value["block"]), SeriesRange(**value["series"]), files)


def cut_blocks(uri: str, part_bytes: int) -> list[BlockPart]:
    """The parts of all blocks in a folder, ordered by time, or of the block if the folder is one."""
    system, path = file_system(uri)
    parts: list[BlockPart] = []
    for block in find_blocks(system, path):
        files = tuple(identify(full_uri(uri, one)) for one in _files_below(system, block.path))
        of_block = full_uri(uri, block.path)
        ranges = plan_ranges(system, block, max(1, part_bytes // _BYTES_PER_SAMPLE))
        parts += [BlockPart(of_block, block, series, files) for series in ranges]
    return parts


def block_part_chunks(part: BlockPart, spec: ImportSpec) -> Iterator[Chunk]:
    """The chunks of a part."""
    system, _ = file_system(part.uri)
    return block_chunks(read_range(system, part.block, part.series, SAMPLES_PER_CHUNK), spec.packed_bytes)


def _files_below(system: pafs.FileSystem, path: str) -> list[str]:
    found = system.get_file_info(pafs.FileSelector(path, recursive=True))
    return sorted(str(one.path) for one in found if one.type == pafs.FileType.File)
