"""The spec of a send: all that its messages depend on, except the series. Stored with the job."""

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
    """Selects the series of one of several jobs, by the time zone in a label: those of `zones`. `planned` are the zones
    of all jobs. The job with `counts_others` counts series whose zone belongs to no job as bad records.
    """

    label: str
    zones: tuple[str, ...]
    counts_others: bool
    planned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SendSpec:
    """The series to send, their messages, and the target topic.

    The selector is evaluated at the end of `window`. It matches series that had a sample by then, and one since the
    start of the window. A chunk has at most `chunk_series` series, and ends with the message that makes it reach
    `chunk_bytes`.
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
        """The text for the job's row."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS).decode()

    @classmethod
    def from_json(cls, text: str) -> "SendSpec":
        """Parse the result of `to_json`."""
        value: dict[str, Any] = orjson.loads(text)
        # Not part of the spec: workers read it, see `strandline.jobs.rate`.
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
    """A part: the series with key hashes from `first` to `last` (inclusive)."""

    first: int
    last: int

    def to_json(self, selector: str) -> str:
        """The text for the part's row."""
        value = {"kind": "hashes", "uri": selector, "first": f"{self.first:032x}", "last": f"{self.last:032x}"}
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "HashRange":
        """Parse the result of `to_json`."""
        value = json.loads(text)
        return cls(int(value["first"], 16), int(value["last"], 16))


def equal_ranges(parts: int) -> tuple[HashRange, ...]:
    """All hashes, divided into ranges of equal length."""
    bounds = [index * HASHES // parts for index in range(parts + 1)]
    return tuple(HashRange(bounds[at], bounds[at + 1] - 1) for at in range(parts))
