"""Encodes runs of series as segments, the stored rows of samples, and decodes them.

A segment consists of a checksum; a header with counts, the minimum and maximum time and the section lengths; and the
sections. The first sections are the directory (metrics, key hashes, and which series has which times), then times and
values follow. Key hashes are stored uncompressed, because they don't compress. Segments have about 64 KB. The number of
samples in a segment must be chosen before they are compressed, from the sizes of the segments before it.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, U64s, run_lengths, run_offsets
from strandline.digest import digest
from strandline.errors import Fatal
from strandline.store.kernels.order import first_unordered_series, first_unordered_times
from strandline.store.rows import Segment
from strandline.store.segment_columns import (
    TIME_SECTIONS,
    VALUE_SECTIONS,
    MalformedSegmentError,
    Timetables,
    pack,
    pack_times,
    pack_values,
    unpack,
    unpack_stale_markers,
    unpack_times,
    unpack_timetables,
    unpack_values,
)
from strandline.store.selecting import Mask, WantedSeries
from strandline.store.series_run import SeriesKey, SeriesRun
from strandline.time_range import ALL_TIMES, TimeRange

VERSION = 1
TARGET_BYTES = 65_536
# Independent of the compression ratio: reading one series decodes a whole segment.
MAX_SAMPLES = 262_144
# The overhead of a series, and the initial estimate of the bytes per sample.
BYTES_PER_SERIES, INITIAL_BYTES_PER_SAMPLE = 24, 0.5

_MAGIC = b"SLS"
_CHECKSUM = struct.Struct("<Q")
_HEADER = struct.Struct("<3sBIIIIIqq")
_DIRECTORY_SECTIONS = 4
_LENGTHS = struct.Struct(f"<{_DIRECTORY_SECTIONS + TIME_SECTIONS + VALUE_SECTIONS}I")
_SECTIONS_FROM = _CHECKSUM.size + _HEADER.size + _LENGTHS.size


class SegmentDamaged(Fatal):
    """A stored segment differs from what was written. No part of it is returned."""


@dataclass(frozen=True, slots=True)
class Directory:
    """What is known of a segment without decompressing samples: its series in order, and its time bounds."""

    metric: U64s
    key_high: U64s
    key_low: U64s
    timetables: Timetables
    least_time: int
    greatest_time: int

    def __len__(self) -> int:
        return len(self.metric)

    @property
    def counts(self) -> I64s:
        """The number of samples of each series in the segment."""
        return self.timetables.counts

    def overlaps(self, least: int, greatest: int) -> bool:
        """Whether the segment may have a sample between two times (inclusive)."""
        return self.least_time <= greatest and least <= self.greatest_time


@dataclass(frozen=True, slots=True)
class _Opened:
    """The parsed segment, with a valid checksum."""

    series: int
    samples: int
    metrics: int
    timetables: int
    odd: int
    least_time: int
    greatest_time: int
    sections: Sequence[bytes]

    @property
    def times(self) -> Sequence[bytes]:
        return self.sections[_DIRECTORY_SECTIONS : _DIRECTORY_SECTIONS + TIME_SECTIONS]

    @property
    def values(self) -> Sequence[bytes]:
        return self.sections[_DIRECTORY_SECTIONS + TIME_SECTIONS :]


def encode_run(run: SeriesRun, *, target_bytes: int = TARGET_BYTES) -> list[Segment]:
    """Encode a run as segments, in order. Each has about `target_bytes`, and never more than twice that if it has more
    than one sample. A series is divided only if the first segment would otherwise be less than half full. The same run
    always gives the same bytes.
    """
    _check(run)
    segments: list[Segment] = []
    start, estimate = 0, INITIAL_BYTES_PER_SAMPLE
    while start < run.samples:
        piece = _piece(run, start, _end_of_piece(run, start, estimate, target_bytes))
        data = _encode(piece)
        actual = (len(data) - BYTES_PER_SERIES * len(piece)) / piece.samples
        if len(data) > 2 * target_bytes and piece.samples > 1:
            estimate = max(actual, 2 * estimate)
            continue
        # A segment that compressed well says little about the next one: an estimate that is too high is cheaper than
        # encoding twice.
        estimate = max(actual, estimate / 2)
        first = SeriesKey(int(piece.metric[0]), int(piece.key_high[0]), int(piece.key_low[0])).to_bytes()
        is_same = bool(segments) and segments[-1].first == first
        segments.append(Segment(first, segments[-1].seq + 1 if is_same else 0, data))
        start += piece.samples
    return segments


def runs_checksum(segments: Sequence[Segment]) -> bytes:
    """Return the checksum over all segments of a group, in order, that the manifest row stores."""
    return digest(b"".join(segment.data[: _CHECKSUM.size] for segment in segments)).to_bytes(16, "little")


def decode_segment(data: bytes, *, named: str) -> SeriesRun:
    """Decode a whole segment. Raise `SegmentDamaged`, with the segment's name, if it differs from what was written."""
    with _naming(named):
        opened = _open(data, named)
        directory = _directory(opened)
        return _samples(opened, directory, np.ones(opened.series, dtype=np.bool_), ALL_TIMES, with_values=True)


def decode_directory(data: bytes, *, named: str) -> Directory:
    """Decode a segment's directory, without samples. Raise `SegmentDamaged` as `decode_segment` does."""
    with _naming(named):
        return _directory(_open(data, named))


def select(data: bytes, keys: WantedSeries, times: TimeRange, *, named: str, with_values: bool = True) -> SeriesRun:
    """Decode the samples of some series in a time range; series without samples there are omitted. Without values, each
    value is 0 unless it is a staleness marker: enough to count samples, at much less cost.

    Raises `SegmentDamaged` as `decode_segment` does.
    """
    with _naming(named):
        opened = _open(data, named)
        if opened.least_time > times.last or times.first > opened.greatest_time:
            return SeriesRun.empty()
        directory = _directory(opened)
        wanted = keys.wanted_mask(directory.metric, directory.key_high, directory.key_low)
        if not wanted.any():
            return SeriesRun.empty()
        return _samples(opened, directory, wanted, times, with_values=with_values)


@contextmanager
def _naming(named: str) -> Iterator[None]:
    try:
        yield
    except MalformedSegmentError as unsound:
        raise SegmentDamaged(
            f"segment {named} is damaged: {unsound}",
            remedy="Rewind the shard to before this bucket while Kafka still has its records, to write it again",
        ) from unsound


def _check(run: SeriesRun) -> None:
    """Reject an invalid run, which would be stored and then rejected at each read."""
    if run.first_sample[0] != 0 or not run.first_sample[-1] == len(run.time) == len(run.value):
        raise ValueError(
            f"the bounds of a run's series don't cover its {len(run.time)} times and {len(run.value)} values"
        )
    if len(run) + 1 != len(run.first_sample) or (run_lengths(run.first_sample) < 1).any():
        raise ValueError("a series of a run has no samples")
    if (series := first_unordered_series(run.metric, run.key_high, run.key_low)) >= 0:
        raise ValueError(f"series {series} of a run is not above the one before it")
    if (series := first_unordered_times(run.time, run.first_sample)) >= 0:
        raise ValueError(f"the times of series {series} of a run are not ascending")


def _end_of_piece(run: SeriesRun, start: int, estimate: float, target_bytes: int) -> int:
    """Return where a segment that begins with sample `start` should end, at `estimate` bytes per sample."""
    bytes_per_sample = max(estimate, target_bytes / MAX_SAMPLES)
    series = int(np.searchsorted(run.first_sample, start, side="right")) - 1
    ends = run.first_sample[series + 1 : series + 2 + target_bytes // BYTES_PER_SERIES]
    sizes = BYTES_PER_SERIES * np.arange(1, len(ends) + 1) + bytes_per_sample * (ends - start)
    whole = int(np.searchsorted(sizes, target_bytes, side="right"))
    end, size = (int(ends[whole - 1]), float(sizes[whole - 1])) if whole else (start, 0.0)
    if size < target_bytes / 2 and whole < len(ends):
        room = int((target_bytes - size - BYTES_PER_SERIES) / bytes_per_sample)
        end = min(end + max(room, 1), int(ends[whole]))
    return end


def _piece(run: SeriesRun, start: int, end: int) -> SeriesRun:
    """Return the samples `[start, end)` with their series."""
    series = int(np.searchsorted(run.first_sample, start, side="right")) - 1
    stop = int(np.searchsorted(run.first_sample, end, side="left"))
    return SeriesRun(
        run.metric[series:stop],
        run.key_high[series:stop],
        run.key_low[series:stop],
        run.first_sample[series : stop + 1].clip(start, end) - start,
        run.time[start:end],
        run.value[start:end],
    )


def _encode(piece: SeriesRun) -> bytes:
    metrics, counts = np.unique(piece.metric, return_counts=True)
    timetables, times = pack_times(piece.time, piece.first_sample)
    odd, values = pack_values(piece.value, piece.first_sample)
    hashes = [column.astype("<u8").tobytes() for column in (metrics, piece.key_high, piece.key_low)]
    sections = [hashes[0], pack(counts.astype(np.uint32)), *hashes[1:], *times, *values]
    header = _HEADER.pack(
        _MAGIC,
        VERSION,
        len(piece),
        piece.samples,
        len(metrics),
        timetables,
        odd,
        int(piece.time.min()),
        int(piece.time.max()),
    )
    body = b"".join([header, _LENGTHS.pack(*map(len, sections)), *sections])
    return _CHECKSUM.pack(_low_word(body)) + body


def _open(data: bytes, named: str) -> _Opened:
    if len(data) < _SECTIONS_FROM:
        raise MalformedSegmentError(f"it has only {len(data)} bytes")
    if _CHECKSUM.unpack_from(data)[0] != _low_word(np.frombuffer(data, dtype=np.uint8)[_CHECKSUM.size :]):
        raise MalformedSegmentError("its checksum is wrong")
    magic, version, series, samples, metrics, timetables, odd, least, greatest = _HEADER.unpack_from(
        data, _CHECKSUM.size
    )
    if magic != _MAGIC or version != VERSION:
        raise SegmentDamaged(
            f"segment {named} is of kind {magic!r} and version {version}; this program reads {_MAGIC!r} and {VERSION}",
            remedy="Use the version of Strandline that wrote it, or a later one",
        )
    ends = run_offsets(np.array(_LENGTHS.unpack_from(data, _CHECKSUM.size + _HEADER.size))) + _SECTIONS_FROM
    if ends[-1] != len(data):
        raise MalformedSegmentError(f"its sections end at byte {ends[-1]} of {len(data)}")
    sections = [data[start:end] for start, end in pairwise(ends.tolist())]
    if not 0 < metrics <= series <= samples <= MAX_SAMPLES or timetables > series or odd > samples:
        raise MalformedSegmentError(
            f"its header has invalid counts: {metrics} metrics, {series} series, {timetables} timetables, "
            f"{samples} samples, {odd} odd values"
        )
    return _Opened(series, samples, metrics, timetables, odd, least, greatest, sections)


def _directory(opened: _Opened) -> Directory:
    metric_hashes, metric_counts, high, low = opened.sections[:_DIRECTORY_SECTIONS]
    if len(metric_hashes) != 8 * opened.metrics or not len(high) == len(low) == 8 * opened.series:
        raise MalformedSegmentError("its numbers of hashes and series differ")
    counts = unpack(metric_counts, opened.metrics, np.uint32)
    if counts.sum() != opened.series or not counts.all():
        raise MalformedSegmentError("the series of its metrics don't add up")
    metric = np.repeat(np.frombuffer(metric_hashes, dtype="<u8").astype(np.uint64), counts)
    key_high, key_low = (np.frombuffer(hashes, dtype="<u8").astype(np.uint64) for hashes in (high, low))
    if first_unordered_series(metric, key_high, key_low) >= 0:
        raise MalformedSegmentError("its series are not in order")
    tables = unpack_timetables(opened.times, opened.series, opened.timetables)
    if int(tables.counts.sum()) != opened.samples:
        raise MalformedSegmentError("the samples of its series don't add up")
    return Directory(metric, key_high, key_low, tables, opened.least_time, opened.greatest_time)


def _samples(opened: _Opened, directory: Directory, wanted: Mask, times: TimeRange, *, with_values: bool) -> SeriesRun:
    chosen = unpack_times(opened.times, directory.timetables, wanted, times)
    bounds, header_bounds = (chosen.least, chosen.greatest), (opened.least_time, opened.greatest_time)
    if bounds[0] < header_bounds[0] or bounds[1] > header_bounds[1] or (wanted.all() and bounds != header_bounds):
        raise MalformedSegmentError(f"its times are from {bounds[0]} to {bounds[1]}, unlike those in its header")
    values_of = unpack_values if with_values else unpack_stale_markers
    value = values_of(opened.values, directory.counts, opened.odd, chosen)
    kept = chosen.ends > chosen.starts
    metric, key_high, key_low = (hashes[kept] for hashes in (directory.metric, directory.key_high, directory.key_low))
    return SeriesRun(metric, key_high, key_low, run_offsets((chosen.ends - chosen.starts)[kept]), chosen.time, value)


def _low_word(data: bytes | npt.NDArray[np.uint8]) -> int:
    return digest(data) & 0xFFFF_FFFF_FFFF_FFFF
