"""What came of a part, or has come of it so far, as it stands in its row: counts, samples by time, bad records."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from strandline.jobs.bad_records import BadRecord, BadRecords
from strandline.jobs.control_list import pack_keys, unpack_keys
from strandline.jobs.counts import Counts
from strandline.recovery.periods import HOUR

_DAY_MS = 24 * HOUR
# By hour as long as they are few, else by day, by 30 days, by 1,000 days: years of samples must fit into a row.
_STEPS = (HOUR, _DAY_MS, 30 * _DAY_MS, 1_000 * _DAY_MS)
MAX_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class SamplesByTime:
    """How many samples lie in each step of `step_ms`, by the step's beginning: hours, or longer ones where those would
    be too many.
    """

    step_ms: int = HOUR
    counts: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def joined(cls, some: Iterable["SamplesByTime"]) -> "SamplesByTime":
        """Those of several together, in steps that are as short as they can be."""
        found = list(some)
        step = max((one.step_ms for one in found), default=HOUR)
        for length in _STEPS:
            if length < step:
                continue
            counts: dict[int, int] = {}
            for one in found:
                for begin, count in one.counts.items():
                    counts[begin // length * length] = counts.get(begin // length * length, 0) + count
            if len(counts) <= MAX_STEPS:
                break
        return cls(length, dict(sorted(counts.items())))


@dataclass(frozen=True, slots=True)
class FileWritten:
    """A file that a part has written: its name, and what is in it. `sha256` is that of its bytes."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """Of one part. `lines` counts those of a text, so that a bad record's line in its file can be told; `series` counts
    those that each chunk brought, so that one in several chunks counts several times. `nulls` counts values of good
    records that are null: they are left out, and are neither samples nor bad. `control` has the series that a
    control sample left out, see `strandline.jobs.control_list`.
    """

    counts: Counts = field(default_factory=Counts)
    chunks: int = 0
    lines: int = 0
    series: int = 0
    times: SamplesByTime = field(default_factory=SamplesByTime)
    bad: BadRecords = field(default_factory=BadRecords)
    control: str = ""
    files: tuple[FileWritten, ...] = ()
    nulls: int = 0

    def __add__(self, other: "PartOutcome") -> "PartOutcome":
        return PartOutcome(
            self.counts + other.counts,
            self.chunks + other.chunks,
            self.lines + other.lines,
            self.series + other.series,
            SamplesByTime.joined((self.times, other.times)),
            BadRecords.joined((self.bad, other.bad)),
            pack_keys([*unpack_keys(self.control), *unpack_keys(other.control)]),
            (*self.files, *other.files),
            self.nulls + other.nulls,
        )

    def to_json(self) -> str:
        """As it stands in a part's row."""
        value = asdict(self)
        value["times"]["counts"] = list(self.times.counts.items())
        return orjson.dumps(value).decode()

    @classmethod
    def from_json(cls, text: str) -> "PartOutcome":
        """What `to_json` wrote; that of nothing for an empty text."""
        if not text:
            return cls()
        value: dict[str, Any] = orjson.loads(text)
        times, bad = value["times"], value["bad"]
        return cls(
            Counts(**value["counts"]),
            value["chunks"],
            value["lines"],
            value["series"],
            SamplesByTime(times["step_ms"], dict(times["counts"])),
            BadRecords(bad["counts"], tuple(BadRecord(**example) for example in bad["examples"])),
            value.get("control", ""),
            tuple(FileWritten(**one) for one in value.get("files", ())),
            value.get("nulls", 0),
        )
