"""Checks the segments that one row of the manifest references: that they exist, are intact and in order, and match the
row.

They are read one at a time. Only the series of the group are kept, not their samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from strandline.arrays import I64s, U64s, run_lengths
from strandline.recovery.verification.findings import Counts, FindingKind, Findings, counted
from strandline.store.late_samples import late_samples, merged_late
from strandline.store.protocol import Store
from strandline.store.rows import GroupRow, LateSamples, Segment, SegmentsOf, ShardId
from strandline.store.segment_codec import SegmentDamaged, decode_directory, decode_segment, runs_checksum
from strandline.store.series_run import SeriesKey

_MAX_HOURS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class SeriesTimes:
    """Series in order, with the number of samples and the earliest and latest time of each. If samples were not decoded
    (`has_times` is False), the times are those of the whole segment.
    """

    metric: U64s
    key_high: U64s
    key_low: U64s
    samples: I64s
    least: I64s
    greatest: I64s
    has_times: bool

    def __len__(self) -> int:
        return len(self.metric)

    def key(self, position: int) -> SeriesKey:
        """The key at a position."""
        return SeriesKey(int(self.metric[position]), int(self.key_high[position]), int(self.key_low[position]))

    def from_second(self) -> "SeriesTimes":
        """All but the first."""
        return SeriesTimes(
            self.metric[1:],
            self.key_high[1:],
            self.key_low[1:],
            self.samples[1:],
            self.least[1:],
            self.greatest[1:],
            self.has_times,
        )

    @staticmethod
    def concatenated(parts: list["SeriesTimes"], *, has_times: bool) -> "SeriesTimes":
        """Several, one after the other."""
        hashes, times = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        return SeriesTimes(
            np.concatenate([hashes, *(part.metric for part in parts)]),
            np.concatenate([hashes, *(part.key_high for part in parts)]),
            np.concatenate([hashes, *(part.key_low for part in parts)]),
            np.concatenate([times, *(part.samples for part in parts)]),
            np.concatenate([times, *(part.least for part in parts)]),
            np.concatenate([times, *(part.greatest for part in parts)]),
            has_times,
        )


@dataclass(frozen=True, slots=True)
class _Decoded:
    """One segment, without its values."""

    series: SeriesTimes
    samples: int
    least_time: int
    greatest_time: int
    late: tuple[LateSamples, ...]


@dataclass(slots=True)
class GroupReader:
    """Reads the segments of rows and reports their faults. With `samples`, everything is decompressed; without, only
    checksums and directories are checked.
    """

    store: Store
    shard: ShardId
    groups: int
    flush_interval: int
    samples: bool
    found: Findings
    counts: Counts

    def read(self, row: GroupRow) -> SeriesTimes | None:
        """The series in the segments of a row; None if the segments are not intact, which has been reported then."""
        faults = len(self.found.found)
        sums = _Sums(self, row)
        where = SegmentsOf(self.shard, row.bucket, row.group, row.attempt)
        for segment in self.store.segments(where):
            named = f"{segment.first.hex()}/{segment.seq} of attempt {row.attempt}"
            try:
                decoded = self._decode(segment, row, named)
            except SegmentDamaged as error:
                self._add(FindingKind.SEGMENT_DAMAGED, row, error.message)
                sums.seen(segment)
                continue
            sums.seen(segment)
            sums.take(segment, decoded, named)
        self.counts.groups += 1
        if not sums.check_count() or len(self.found.found) > faults:
            return None
        sums.check()
        return SeriesTimes.concatenated(sums.parts, has_times=self.samples)

    def _decode(self, segment: Segment, row: GroupRow, named: str) -> _Decoded:
        if not self.samples:
            directory = decode_directory(segment.data, named=named)
            series = SeriesTimes(
                directory.metric,
                directory.key_high,
                directory.key_low,
                directory.counts,
                np.full(len(directory), directory.least_time),
                np.full(len(directory), directory.greatest_time),
                has_times=False,
            )
            return _Decoded(series, int(series.samples.sum()), directory.least_time, directory.greatest_time, ())
        run = decode_segment(segment.data, named=named)
        least, greatest = run.time[run.first_sample[:-1]], run.time[run.first_sample[1:] - 1]
        return _Decoded(
            SeriesTimes(
                run.metric, run.key_high, run.key_low, run_lengths(run.first_sample), least, greatest, has_times=True
            ),
            run.samples,
            int(least.min()),
            int(greatest.max()),
            late_samples(run.time, row.bucket, self.flush_interval),
        )

    def _add(self, kind: FindingKind, row: GroupRow, what: str) -> None:
        self.found.add(kind, what, bucket=row.bucket, group=row.group)


@dataclass(slots=True)
class _Sums:
    """The totals of the segments of a row so far."""

    reader: GroupReader
    row: GroupRow
    parts: list[SeriesTimes] = field(default_factory=list)
    _heads: list[Segment] = field(default_factory=list)
    _series: int = 0
    _samples: int = 0
    _least: int | None = None
    _greatest: int | None = None
    _late: tuple[LateSamples, ...] = ()
    _misgrouped: int = 0

    def seen(self, segment: Segment) -> None:
        """Count a segment, whatever it contains."""
        self.reader.counts.segments += 1
        self.reader.counts.bytes += len(segment.data)
        # A group's checksum is computed from the checksum at the start of each segment.
        self._heads.append(Segment(segment.first, segment.seq, segment.data[:8]))

    def take(self, segment: Segment, decoded: _Decoded, named: str) -> None:
        """Add an intact segment."""
        series = decoded.series
        self._check_order(segment, series, named)
        groups = np.uint64(self.reader.groups)
        self._misgrouped += int(np.count_nonzero(series.metric % groups != self.row.group))
        self._samples += decoded.samples
        self._least = decoded.least_time if self._least is None else min(self._least, decoded.least_time)
        self._greatest = decoded.greatest_time if self._greatest is None else max(self._greatest, decoded.greatest_time)
        self._late = merged_late((*self._late, *decoded.late))
        if self.parts and self.parts[-1].key(-1) == series.key(0):
            self._continue_series(series, named)
            series = series.from_second()
        elif self.parts and self.parts[-1].key(-1) > series.key(0):
            self._add(
                FindingKind.SEGMENT_ORDER,
                f"segment {named} starts with a series that sorts before the previous segment's end",
            )
        if len(series):
            self.parts.append(series)
        self._series += len(series)

    def check_count(self) -> bool:
        """Whether as many segments exist as the row states."""
        found, stated = len(self._heads), self.row.segments
        if found != stated:
            self._add(
                FindingKind.SEGMENT_MISSING if found < stated else FindingKind.SEGMENT_ORDER,
                f"{counted(found, 'segment')} of group {self.row.group} exist under attempt {self.row.attempt}, but its"
                f" row states {stated}",
            )
        return found == stated

    def check(self) -> None:
        """Compare the totals with the row."""
        row, counts = self.row, self.reader.counts
        counts.series += self._series
        counts.samples += self._samples
        checksum = runs_checksum(self._heads)
        if checksum != row.checksum:
            self._add(
                FindingKind.SEGMENT_CHECKSUM,
                f"the segments of group {row.group} under attempt {row.attempt} are intact, but not those that its row"
                f" references: their checksum is {checksum.hex()}, the row's is {row.checksum.hex()}",
            )
        for what, found, stated in (
            ("series", self._series, row.series),
            ("samples", self._samples, row.samples),
            ("as earliest time", self._least, row.least_time),
            ("as latest time", self._greatest, row.greatest_time),
        ):
            if found != stated:
                self._add(
                    FindingKind.SEGMENT_SUMS,
                    f"the segments of group {row.group} have {found} {what}, but its row states {stated}",
                )
        if self._misgrouped:
            self._add(
                FindingKind.WRONG_GROUP,
                f"{counted(self._misgrouped, 'series', 'series')} in the segments of group {row.group} belong to"
                " another group by their metric",
            )
        # Rows of schema version 2 have a count for each hour.
        stated_late = merged_late(row.late)
        if self.reader.samples and stated_late != self._late:
            self._add(
                FindingKind.LATE_SAMPLES,
                f"the segments of group {row.group} have late samples by hour {_describe_late(self._late)}, but its"
                f" row states {_describe_late(stated_late)}",
            )

    def _check_order(self, segment: Segment, series: SeriesTimes, named: str) -> None:
        # `seen` has already appended this one.
        before = self._heads[-2] if len(self._heads) > 1 else None
        if segment.first != series.key(0).to_bytes():
            self._add(
                FindingKind.SEGMENT_ORDER,
                f"segment {named} starts with a different series, {series.key(0).to_bytes().hex()}",
            )
            return
        expected = before.seq + 1 if before is not None and before.first == segment.first else 0
        if segment.seq != expected:
            self._add(
                FindingKind.SEGMENT_ORDER,
                f"segment {named} is where number {expected} of its series should be",
            )

    def _continue_series(self, series: SeriesTimes, named: str) -> None:
        """The segment's first series is the last one of the previous segment, and its times continue."""
        last = self.parts[-1]
        if series.has_times and series.least[0] <= last.greatest[-1]:
            self._add(
                FindingKind.SEGMENT_ORDER,
                f"segment {named} continues a series at a time that is not after the previous segment",
            )
        last.samples[-1] += series.samples[0]
        last.least[-1] = min(int(last.least[-1]), int(series.least[0]))
        last.greatest[-1] = max(int(last.greatest[-1]), int(series.greatest[0]))

    def _add(self, kind: FindingKind, what: str) -> None:
        self.reader.found.add(kind, what, bucket=self.row.bucket, group=self.row.group)


def _describe_late(late: Sequence[LateSamples]) -> str:
    hours = [f"{one.hour}{f' and {one.hours - 1} more' if one.hours > 1 else ''}: {one.samples}" for one in late]
    return ", ".join(hours[:_MAX_HOURS_SHOWN] + ["..."] * (len(hours) > _MAX_HOURS_SHOWN)) or "none"
