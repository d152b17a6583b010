"""Plans an import: the files, how they are read, and the parts. Writes nothing."""

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
from strandline.jobs.sources.files import SourceFile, find_files, find_folders
from strandline.jobs.sources.source_errors import SourceUnusable, source_errors
from strandline.jobs.sources.text_records import RecordRules
from strandline.time_range import ALL_TIMES, TimeRange

PACKED_BYTES: Final = 8 << 20
"""The limit for one transaction, before compression."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of an import. Lengths are in bytes."""

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
    """A spec and its parts, in the order of the files and of the bytes in them."""

    spec: ImportSpec
    parts: tuple[PartSource, ...]

    @property
    def hash(self) -> str:
        """A digest of the spec and the parts, including the identities of the files."""
        texts = [self.spec.to_json(), *(part.to_json() for part in self.parts)]
        joined = "\n".join(texts)
        return f"{digest(joined.encode()):032x}"


def plan_import(uris: Sequence[str], options: ImportOptions) -> ImportPlan:
    """Inspect all files and divide them into parts. Raises `SourceUnusable` for a file that can't be imported, and the
    errors of the mapping.
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
            with source_errors(uri):
                of_blocks = cut_blocks(uri, options.part_bytes)
            yield from of_blocks
        return
    for file in find_files(uris):
        with source_errors(file.uri):
            of_file = _parts_of(file, options, rules)
        yield from of_file


def _parts_of(file: SourceFile, options: ImportOptions, rules: RecordRules) -> Sequence[PartSource]:
    if options.format is Format.PARQUET:
        return cut_parquet(file, parquet_mapping(options.mapping), options.part_bytes)
    return cut_text(_inspect(file, options, rules), options.part_bytes, rules)


def _require_text(line: bytes) -> None:
    """Raises `ValueError` for control characters, which indicate a binary file."""
    control = next((byte for byte in line if byte < ord(" ") and byte not in b"\t\r\n"), None)
    if control is not None:
        raise ValueError(f"its first line has the byte 0x{control:02x}, which text does not have")


def _inspect(file: SourceFile, options: ImportOptions, rules: RecordRules) -> PlannedFile:
    """A file with its header, if it has one. Checks the mapping against it."""
    with text_reader(file) as reader:
        begins = text_start(reader)
        if options.format is not Format.CSV:
            return PlannedFile(file, begins)
        try:
            line, after_header = first_line(reader, begins, rules)
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
    return PlannedFile(file, after_header, header, header_lines=1)
