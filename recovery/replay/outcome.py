"""The outcome of a unit, which goes to the driver, and the result of a job, made from the outcomes of its units."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from strandline.digest import digest
from strandline.recovery.replay.job_result import JobResult, StoredGroup
from strandline.recovery.replay.record_counts import RecordCounts, counts_from_json, counts_to_json, sum_counts
from strandline.recovery.replay.replay_input import JobInput
from strandline.store.late_samples import merged_late
from strandline.store.rows import LateSamples
from strandline.store.segment_codec import VERSION

# A segment starts with its checksum. A group's checksum is computed from those of its segments, in order.
CHECKSUM_BYTES = 8


@dataclass(frozen=True, slots=True)
class GroupPart:
    """What a unit wrote of one group. `checksums` are its segments' checksums, concatenated."""

    group: int
    series: int
    samples: int
    least_time: int
    greatest_time: int
    checksums: bytes = field(repr=False)
    late: tuple[LateSamples, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitOutcome:
    """The outcome of a written unit. `unit` is its number in the wave."""

    unit: int
    groups: tuple[GroupPart, ...]
    counts: RecordCounts
    keys: int = 0
    key_rows: int = 0
    fault_rows: int = 0

    def to_bytes(self) -> bytes:
        """Encode it for the driver."""
        groups = [
            [
                one.group,
                [one.series, one.samples],
                [one.least_time, one.greatest_time],
                one.checksums.hex(),
                [[late.hour, late.samples, late.hours] for late in one.late],
            ]
            for one in self.groups
        ]
        numbers = [self.unit, self.keys, self.key_rows, self.fault_rows]
        return json.dumps([numbers, groups, counts_to_json(self.counts)]).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "UnitOutcome":
        """The inverse of `to_bytes`."""
        (unit, keys, key_rows, fault_rows), groups, counts = json.loads(data)
        parts = tuple(
            GroupPart(
                group,
                series,
                samples,
                least,
                greatest,
                bytes.fromhex(checksums),
                tuple(LateSamples(*one) for one in late),
            )
            for group, (series, samples), (least, greatest), checksums, late in groups
        )
        return cls(unit, parts, counts_from_json(counts), keys, key_rows, fault_rows)


def fold_outcomes(job: JobInput, outcomes: Iterable[UnitOutcome]) -> JobResult:
    """The result of a job from the outcomes of its units. Units without contents may have none."""
    units = range(job.first_unit, job.first_unit + job.units)
    mine = sorted((one for one in outcomes if one.unit in units), key=lambda one: one.unit)
    parts: dict[int, list[GroupPart]] = defaultdict(list)
    for outcome in mine:
        for part in outcome.groups:
            parts[part.group].append(part)
    return JobResult(
        groups=tuple(_stored(group, parts[group]) for group in sorted(job.groups)),
        counts=sum_counts(one.counts for one in mine),
        data_expires=job.data_life.expires,
        keys=sum(one.keys for one in mine),
        key_rows=sum(one.key_rows for one in mine),
        fault_rows=sum(one.fault_rows for one in mine),
    )


def _stored(group: int, parts: Sequence[GroupPart]) -> StoredGroup:
    checksums = b"".join(part.checksums for part in parts)
    return StoredGroup(
        group=group,
        segments=len(checksums) // CHECKSUM_BYTES,
        series=sum(part.series for part in parts),
        samples=sum(part.samples for part in parts),
        least_time=min((part.least_time for part in parts), default=None),
        greatest_time=max((part.greatest_time for part in parts), default=None),
        # The same as `runs_checksum`.
        checksum=digest(checksums).to_bytes(16, "little"),
        codec_version=VERSION,
        late=merged_late(one for part in parts for one in part.late),
    )
