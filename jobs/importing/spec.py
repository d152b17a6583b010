"""The spec of an import: what the outcome of its parts depends on beside their files. It is stored with the job."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from strandline.jobs.sources.text_records import RecordRules
from strandline.time_range import TimeRange


class Format(StrEnum):
    """What a file holds."""

    CSV = "csv"
    OPENMETRICS = "openmetrics"
    JSONL = "jsonl"
    PARQUET = "parquet"
    PROMETHEUS_BLOCKS = "prometheus-blocks"


@dataclass(frozen=True, slots=True)
class ImportSpec:
    """How files are read, and what of them lands. `mapping` is that of the format. Samples outside of `times` are bad
    records. `packed_bytes` is what a chunk takes at most before it is compressed; 0: no limit, as in jobs that were
    planned before there was one. `ordered`: parts run one after the other.
    """

    format: Format
    times: TimeRange
    rules: RecordRules
    mapping: Mapping[str, Any] = field(default_factory=dict)
    packed_bytes: int = 0
    ordered: bool = False

    def to_json(self) -> str:
        """As it stands in a job's row."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str) -> "ImportSpec":
        """What `to_json` wrote."""
        value: dict[str, Any] = orjson.loads(text)
        return cls(
            Format(value["format"]),
            TimeRange(**value["times"]),
            RecordRules(**value["rules"]),
            value["mapping"],
            value.get("packed_bytes", 0),
            value.get("ordered", False),
        )
