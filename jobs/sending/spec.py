"""The spec of a job that sends series: what its messages depend on beside the series. It is stored with the job."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from strandline.jobs.control_sample import ControlSample
from strandline.jobs.rate import RATE
from strandline.time_range import TimeRange

HASHES = 1 << 128


@dataclass(frozen=True, slots=True)
class ZoneRule:
    """Which series belong to one of several jobs, by the time zone in a label: those of `zones`. The job that
    `counts_others` counts series whose zone belongs to no job as bad records; `planned` are the zones of all jobs.
    """

    label: str
    zones: tuple[str, ...]
    counts_others: bool
    planned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SendSpec:
    """What is sent where.

    A selector is evaluated at the end of `window`: series count that had a sample by then, and one since the beginning
    of the window. A chunk has at most `chunk_series` series, and ends with the message that brings it to `chunk_bytes`.
    """

    selector: str
    topic: str
    window: TimeRange
    template: Mapping[str, Any]
    control: ControlSample = field(default_factory=lambda: ControlSample(0.0))
    zones: ZoneRule | None = None
    chunk_series: int = 10_000
    chunk_bytes: int = 8 << 20
    max_message: int = 1 << 20

    def to_json(self) -> str:
        """As it stands in a job's row."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str) -> "SendSpec":
        """What `to_json` wrote."""
        value: dict[str, Any] = orjson.loads(text)
        # For the job's workers, see `strandline.jobs.rate`.
        value.pop(RATE, None)
        zones = value["zones"]
        rule = None
        if zones is not None:
            rule = ZoneRule(zones["label"], tuple(zones["zones"]), zones["counts_others"], tuple(zones["planned"]))
        return cls(
            **{
                **value,
                "window": TimeRange(**value["window"]),
                "control": ControlSample(**value["control"]),
                "zones": rule,
            }
        )


@dataclass(frozen=True, slots=True)
class HashRange:
    """A part: the series whose key hashes lie from `first` to `last`, both included."""

    first: int
    last: int

    def to_json(self, selector: str) -> str:
        """As it stands in a part's row."""
        value = {"kind": "hashes", "uri": selector, "first": f"{self.first:032x}", "last": f"{self.last:032x}"}
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "HashRange":
        """What `to_json` wrote."""
        value = json.loads(text)
        return cls(int(value["first"], 16), int(value["last"], 16))


def equal_ranges(parts: int) -> tuple[HashRange, ...]:
    """All hashes, divided into this number of ranges of equal length."""
    bounds = [place * HASHES // parts for place in range(parts + 1)]
    return tuple(HashRange(bounds[at], bounds[at + 1] - 1) for at in range(parts))
