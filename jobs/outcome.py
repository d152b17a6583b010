"""The outcome of a part, as stored in its row: counts, samples by time, bad records."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from strandline.jobs.bad_records import BadRecord, BadRecords
from strandline.jobs.control_list import pack_keys, unpack_keys
from strandline.jobs.counts import Counts
from strandline.recovery.periods import HOUR

_DAY_MS = 24 * HOUR
# Hours, or if there are too many of them days, 30 days or 1,000 days: years of samples must fit into a row.
_STEPS = (HOUR, _DAY_MS, 30 * _DAY_MS, 1_000 * _DAY_MS)
MAX_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class SamplesByTime:
    """The number of samples in each step of `step_ms`, by the start of the step. A step is an hour, or longer if there
    would be more than `MAX_STEPS`.
    """

    step_ms: int = HOUR
    counts: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def joined(cls, some: Iterable["SamplesByTime"]) -> "SamplesByTime":
        """The sum of several, in the shortest possible steps."""
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
    """A file that a part has written."""

    name: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """The outcome of a part. `lines` is the number of lines of a text, from which the line numbers of bad records in
    later parts follow. `series` is summed over chunks, so that a series in several chunks counts several times. `nulls`
    is the number of null values in good records; they are skipped, and are neither samples nor bad. `control` contains
    the series of the control sample, see `strandline.jobs.control_list`.
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
        """The text for the part's row."""
        value = asdict(self)
        value["times"]["counts"] = list(self.times.counts.items())
        return orjson.dumps(value).decode()

    @classmethod
    def from_json(cls, text: str) -> "PartOutcome":
        """Parse the result of `to_json`; an empty text is an empty outcome."""
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
