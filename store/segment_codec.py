"""Runs of series as segments, the rows that samples are stored in, and back.

A segment is a checksum, a header with counts, the least and the greatest time and the lengths of the sections, and the
sections: first the directory (metrics, key hashes, which series has which times), then times and values. The key hashes
lie there as they are, for nothing makes them smaller. Segments come out at about 64 KB. How much goes into one has to
be chosen before it is compressed: by what the segments before it came to.
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
    Timetables,
    UnsoundError,
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
# However well samples compress: whoever wants one series reads a whole segment.
MAX_SAMPLES = 262_144
# What a series takes beside its samples, and what a sample takes as long as nothing else is known.
BYTES_A_SERIES, FIRST_GUESS = 24, 0.5

_MAGIC = b"SLS"
_CHECKSUM = struct.Struct("<Q")
_HEADER = struct.Struct("<3sBIIIIIqq")
_DIRECTORY_SECTIONS = 4
_LENGTHS = struct.Struct(f"<{_DIRECTORY_SECTIONS + TIME_SECTIONS + VALUE_SECTIONS}I")
_SECTIONS_FROM = _CHECKSUM.size + _HEADER.size + _LENGTHS.size


class SegmentDamaged(Fatal):
    """A stored segment is not what was written. Nothing of it is given out."""


@dataclass(frozen=True, slots=True)
class Directory:
    """What a segment says of itself before any sample is decompressed: its series in order, and its times' bounds."""

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
        """How many samples each series has here."""
        return self.timetables.counts

    def overlaps(self, least: int, greatest: int) -> bool:
        """Whether there may be a sample from one time to another, both included."""
        return self.least_time <= greatest and least <= self.greatest_time


@dataclass(frozen=True, slots=True)
class _Opened:
    """A segment whose checksum is right, taken apart."""

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
    """Segments of a run, in order. Each has about so many bytes, never more than twice as many if it has more than one
    sample. A series is in two segments only where the first would otherwise be less than half full. The same run gives
    the same bytes.
    """
    _check(run)
    segments: list[Segment] = []
    start, guess = 0, FIRST_GUESS
    while start < run.samples:
        piece = _piece(run, start, _end_of_piece(run, start, guess, target_bytes))
        data = _encode(piece)
        came_to = (len(data) - BYTES_A_SERIES * len(piece)) / piece.samples
        if len(data) > 2 * target_bytes and piece.samples > 1:
            guess = max(came_to, 2 * guess)
            continue
        # One segment that compressed well promises little for the next: guess too much rather than encode it twice.
        guess = max(came_to, guess / 2)
        first = SeriesKey(int(piece.metric[0]), int(piece.key_high[0]), int(piece.key_low[0])).to_bytes()
        is_same = bool(segments) and segments[-1].first == first
        segments.append(Segment(first, segments[-1].seq + 1 if is_same else 0, data))
        start += piece.samples
    return segments


def runs_checksum(segments: Sequence[Segment]) -> bytes:
    """The checksum over all segments of a group, in order, that its row in the manifest holds."""
    return digest(b"".join(segment.data[: _CHECKSUM.size] for segment in segments)).to_bytes(16, "little")


def decode_segment(data: bytes, *, named: str) -> SeriesRun:
    """All that a segment holds; raise `SegmentDamaged`, with the segment named, unless it is what was written."""
    with _naming(named):
        opened = _open(data, named)
        directory = _directory(opened)
        return _samples(opened, directory, np.ones(opened.series, dtype=np.bool_), ALL_TIMES, with_values=True)


def decode_directory(data: bytes, *, named: str) -> Directory:
    """What a segment says of itself, without its samples; raise `SegmentDamaged` as `decode_segment` does."""
    with _naming(named):
        return _directory(_open(data, named))


def select(data: bytes, keys: WantedSeries, times: TimeRange, *, named: str, with_values: bool = True) -> SeriesRun:
    """The samples of some series in a range of times; series without any are left out. Without values, each value is 0,
    unless it is a staleness marker: enough to count samples, for much less work.

    Raises `SegmentDamaged` as `decode_segment` does.
    """
    with _naming(named):
        opened = _open(data, named)
        if opened.least_time > times.last or times.first > opened.greatest_time:
            return SeriesRun.empty()
        directory = _directory(opened)
        wanted = keys.mark(directory.metric, directory.key_high, directory.key_low)
        if not wanted.any():
            return SeriesRun.empty()
        return _samples(opened, directory, wanted, times, with_values=with_values)


@contextmanager
def _naming(named: str) -> Iterator[None]:
    try:
        yield
    except UnsoundError as unsound:
        raise SegmentDamaged(
            f"segment {named} is damaged: {unsound}",
            remedy="Rewind the shard to before this bucket while Kafka still has its records, to write it again",
        ) from unsound


def _check(run: SeriesRun) -> None:
    """A run that is none would be stored, and refused whenever it is read."""
    if run.first_sample[0] != 0 or not run.first_sample[-1] == len(run.time) == len(run.value):
        raise ValueError(f"the samples of a run's series are not its {len(run.time)} times and {len(run.value)} values")
    if len(run) + 1 != len(run.first_sample) or (run_lengths(run.first_sample) < 1).any():
        raise ValueError("a series of a run has no samples")
    if (series := first_unordered_series(run.metric, run.key_high, run.key_low)) >= 0:
        raise ValueError(f"series {series} of a run does not come behind the one before it")
    if (series := first_unordered_times(run.time, run.first_sample)) >= 0:
        raise ValueError(f"the times of series {series} of a run do not rise")


def _end_of_piece(run: SeriesRun, start: int, guess: float, target_bytes: int) -> int:
    """Where a segment that begins with a sample should end, if a sample takes so many bytes."""
    a_sample = max(guess, target_bytes / MAX_SAMPLES)
    series = int(np.searchsorted(run.first_sample, start, side="right")) - 1
    ends = run.first_sample[series + 1 : series + 2 + target_bytes // BYTES_A_SERIES]
    sizes = BYTES_A_SERIES * np.arange(1, len(ends) + 1) + a_sample * (ends - start)
    whole = int(np.searchsorted(sizes, target_bytes, side="right"))
    end, size = (int(ends[whole - 1]), float(sizes[whole - 1])) if whole else (start, 0.0)
    if size < target_bytes / 2 and whole < len(ends):
        room = int((target_bytes - size - BYTES_A_SERIES) / a_sample)
        end = min(end + max(room, 1), int(ends[whole]))
    return end


def _piece(run: SeriesRun, start: int, end: int) -> SeriesRun:
    """The samples at places from `start` up to, not including, `end`, with the series that they belong to."""
    series = int(np.searchsorted(run.first_sample, start, side="right")) - 1
    behind = int(np.searchsorted(run.first_sample, end, side="left"))
    return SeriesRun(
        run.metric[series:behind],
        run.key_high[series:behind],
        run.key_low[series:behind],
        run.first_sample[series : behind + 1].clip(start, end) - start,
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
        raise UnsoundError(f"{len(data)} bytes are too few")
    if _CHECKSUM.unpack_from(data)[0] != _low_word(np.frombuffer(data, dtype=np.uint8)[_CHECKSUM.size :]):
        raise UnsoundError("its checksum is wrong")
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
        raise UnsoundError(f"its sections end at byte {ends[-1]} of {len(data)}")
    sections = [data[start:end] for start, end in pairwise(ends.tolist())]
    if not 0 < metrics <= series <= samples <= MAX_SAMPLES or timetables > series or odd > samples:
        raise UnsoundError(
            f"it says {metrics} metrics, {series} series, {timetables} timetables, {samples} samples, {odd} odd values"
        )
    return _Opened(series, samples, metrics, timetables, odd, least, greatest, sections)


def _directory(opened: _Opened) -> Directory:
    metric_hashes, metric_counts, high, low = opened.sections[:_DIRECTORY_SECTIONS]
    if len(metric_hashes) != 8 * opened.metrics or not len(high) == len(low) == 8 * opened.series:
        raise UnsoundError("it has not as many hashes as series")
    counts = unpack(metric_counts, opened.metrics, np.uint32)
    if counts.sum() != opened.series or not counts.all():
        raise UnsoundError("its metrics have not as many series as it has")
    metric = np.repeat(np.frombuffer(metric_hashes, dtype="<u8").astype(np.uint64), counts)
    key_high, key_low = (np.frombuffer(hashes, dtype="<u8").astype(np.uint64) for hashes in (high, low))
    if first_unordered_series(metric, key_high, key_low) >= 0:
        raise UnsoundError("its series are not in order")
    tables = unpack_timetables(opened.times, opened.series, opened.timetables)
    if int(tables.counts.sum()) != opened.samples:
        raise UnsoundError("its series have not as many samples as it has")
    return Directory(metric, key_high, key_low, tables, opened.least_time, opened.greatest_time)


def _samples(opened: _Opened, directory: Directory, wanted: Mask, times: TimeRange, *, with_values: bool) -> SeriesRun:
    chosen = unpack_times(opened.times, directory.timetables, wanted, times)
    bounds, said = (chosen.least, chosen.greatest), (opened.least_time, opened.greatest_time)
    if bounds[0] < said[0] or bounds[1] > said[1] or (wanted.all() and bounds != said):
        raise UnsoundError(f"its times are from {bounds[0]} to {bounds[1]}, and its header says other ones")
    values_of = unpack_values if with_values else unpack_stale_markers
    value = values_of(opened.values, directory.counts, opened.odd, chosen)
    kept = chosen.ends > chosen.starts
    metric, key_high, key_low = (hashes[kept] for hashes in (directory.metric, directory.key_high, directory.key_low))
    return SeriesRun(metric, key_high, key_low, run_offsets((chosen.ends - chosen.starts)[kept]), chosen.time, value)


def _low_word(data: bytes | npt.NDArray[np.uint8]) -> int:
    return digest(data) & 0xFFFF_FFFF_FFFF_FFFF
