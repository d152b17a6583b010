"""Planning an import: what is read, how, and in which parts. Nothing is written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from strandline.digest import digest
from strandline.jobs.formats.csv_mapping import csv_options, first_row
from strandline.jobs.importing.block_parts import cut_blocks
from strandline.jobs.importing.parquet_parts import cut_parquet, parquet_mapping
from strandline.jobs.importing.parsers import record_rules
from strandline.jobs.importing.part_sources import PartSource
from strandline.jobs.importing.spec import Format, ImportSpec
from strandline.jobs.importing.text_parts import PlannedFile, cut_text, first_line, text_reader, text_start
from strandline.jobs.sources.files import SourceFile, SourceUnusable, find_files, find_folders
from strandline.jobs.sources.text_records import RecordRules
from strandline.time_range import ALL_TIMES, TimeRange

PACKED_BYTES: Final = 8 << 20
"""What lands in one transaction, before it is compressed."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What an operator chooses for an import. Lengths are bytes."""

    format: Format
    mapping: Mapping[str, Any]
    times: TimeRange = ALL_TIMES
    part_bytes: int = 64 << 20
    chunk_bytes: int = 16 << 20
    max_record: int = 1 << 20
    packed_bytes: int = PACKED_BYTES
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """A spec and its parts. Parts follow each other as their bytes do in the files."""

    spec: ImportSpec
    parts: tuple[PartSource, ...]

    @property
    def hash(self) -> str:
        """What tells this plan from any other: its spec, with the identity of its files, and its parts."""
        texts = [self.spec.to_json(), *(part.to_json() for part in self.parts)]
        joined = "\n".join(texts)
        return f"{digest(joined.encode()):032x}"


def plan_import(uris: Sequence[str], options: ImportOptions) -> ImportPlan:
    """Look at all files, and cut them into parts. Raises `SourceUnusable` for a file that can't be imported, and what
    is wrong with the mapping.
    """
    rules = record_rules(options.format, options.mapping, options.chunk_bytes, options.max_record)
    parts = list(_parts(uris, options, rules))
    spec = ImportSpec(
        options.format, options.times, rules, dict(options.mapping), options.packed_bytes, options.ordered
    )
    return ImportPlan(spec, tuple(parts))


def _parts(uris: Sequence[str], options: ImportOptions, rules: RecordRules) -> Iterator[PartSource]:
    if options.format is Format.PROMETHEUS_BLOCKS:
        for uri in find_folders(uris):
            yield from cut_blocks(uri, options.part_bytes)
        return
    for file in find_files(uris):
        if options.format is Format.PARQUET:
            yield from cut_parquet(file, parquet_mapping(options.mapping), options.part_bytes)
        else:
            yield from cut_text(_inspect(file, options, rules), options.part_bytes, rules)


def _require_text(line: bytes) -> None:
    """Raises `ValueError` for bytes that no text has."""
    control = next((byte for byte in line if byte < ord(" ") and byte not in b"\t\r\n"), None)
    if control is not None:
        raise ValueError(f"its first line has the byte 0x{control:02x}, which text does not have")


def _inspect(file: SourceFile, options: ImportOptions, rules: RecordRules) -> PlannedFile:
    """A file, with its header if it has one. The mapping is tried on it."""
    with text_reader(file) as reader:
        begins = text_start(reader)
        if options.format is not Format.CSV:
            return PlannedFile(file, begins)
        try:
            line, behind = first_line(reader, begins, rules)
            _require_text(line)
        except ValueError as error:
            raise SourceUnusable(
                f"{file.uri} can't be imported as CSV: {error}",
                remedy="Check that it is a text file with lines, and --format",
            ) from error
    if not line:
        return PlannedFile(file, begins)
    header = first_row(line, options.mapping)
    csv_options(options.mapping, header)
    if not options.mapping.get("header", True):
        return PlannedFile(file, begins, header)
    return PlannedFile(file, behind, header, header_lines=1)
