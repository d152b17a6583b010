"""The spec of an import: all that the outcome of its parts depends on, except the files. Stored with the job."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from strandline.jobs.sources.text_records import RecordRules
from strandline.time_range import TimeRange


class Format(StrEnum):
    """The format of a file."""

    CSV = "csv"
    OPENMETRICS = "openmetrics"
    JSONL = "jsonl"
    PARQUET = "parquet"
    PROMETHEUS_BLOCKS = "prometheus-blocks"


@dataclass(frozen=True, slots=True)
class ImportSpec:
    """How files are read, and which samples land. The content of `mapping` depends on the format. Samples outside
    `times` are bad records. `packed_bytes` is the limit of a chunk before compression; 0 is no limit, as in jobs
    planned before there was one. With `ordered`, parts run one after the other.
    """

    format: Format
    times: TimeRange
    rules: RecordRules
    mapping: Mapping[str, Any] = field(default_factory=dict)
    packed_bytes: int = 0
    ordered: bool = False

    def to_json(self) -> str:
        """The text for the job's row."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str) -> "ImportSpec":
        """Parse the result of `to_json`."""
        value: dict[str, Any] = orjson.loads(text)
        return cls(
            Format(value["format"]),
            TimeRange(**value["times"]),
            RecordRules(**value["rules"]),
            value["mapping"],
            value.get("packed_bytes", 0),
            value.get("ordered", False),
        )
