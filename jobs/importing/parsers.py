"""For each text format: where its records end, and the parser of its records."""

from collections.abc import Mapping
from typing import Any

from strandline.jobs.formats.csv_mapping import csv_options
from strandline.jobs.formats.csv_rows import parse_csv
from strandline.jobs.formats.json_lines import parse_json_lines
from strandline.jobs.formats.openmetrics import parse_openmetrics
from strandline.jobs.importing.chunks import TextParser
from strandline.jobs.importing.spec import Format, ImportSpec
from strandline.jobs.importing.text_parts import PlannedFile
from strandline.jobs.sources.text_records import RecordRules


def record_rules(format_: Format, mapping: Mapping[str, Any], chunk_bytes: int, max_record: int) -> RecordRules:
    """Where records of a format end. Only CSV may have newlines within quotes, if its mapping permits them."""
    if format_ is Format.CSV and mapping.get("multiline", False):
        return RecordRules(chunk_bytes, max_record, ord(str(mapping.get("quote", '"'))))
    return RecordRules(chunk_bytes, max_record)


def text_parser(spec: ImportSpec, file: PlannedFile) -> TextParser:
    """The parser for the records of a text file."""
    max_bytes = spec.packed_bytes or None
    match spec.format:
        case Format.CSV:
            options = csv_options(spec.mapping, file.header)
            return lambda data, offset: parse_csv(data, offset, options, max_bytes=max_bytes)
        case Format.OPENMETRICS:
            return lambda data, offset: parse_openmetrics(data, offset, max_bytes=max_bytes)
        case Format.JSONL:
            return lambda data, offset: parse_json_lines(data, offset, max_bytes=max_bytes)
        case _:
            raise ValueError(f"{spec.format} is not a text format")
