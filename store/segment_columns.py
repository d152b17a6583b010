"""Compresses the columns of a segment into sections of bytes, and decompresses them.

Samples are transformed before compression. Series that were scraped together have the same times, which are stored once
as a *timetable*. Values that are decimal numbers become integers. Times and integers become a trend and residuals (see
the kernels `trends` and `decimals`), which pcodec compresses. Other values are compressed as doubles. Everything is
restored bit for bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from pcodec import ChunkConfig, DeltaSpec, ModeSpec, standalone

from strandline.arrays import F64s, I64s, U32s, U64s, run_lengths, run_offsets
from strandline.store.kernels.decimals import MAX_DIGITS, RAW, STALE, to_integers, to_stale_markers, to_values
from strandline.store.kernels.timetables import copy_runs, find_timetables, number_timetables, restore_times
from strandline.store.kernels.trends import LEVELS, STEP, find_trends, locate_residuals, write_residuals
from strandline.store.selecting import Mask
from strandline.time_range import TimeRange

# pcodec's default. Level 6 is a tenth faster and 1 % larger; from level 9, doubles take twice as long without a gain.
COMPRESSION = 8
# Numbers whose trend is already removed: looking for another one costs time and finds nothing.
_NUMBERS = ChunkConfig(compression_level=COMPRESSION, mode_spec=ModeSpec.classic(), delta_spec=DeltaSpec.no_op())
_DOUBLES = ChunkConfig(compression_level=COMPRESSION)

_TREND_SECTIONS = 4 + LEVELS
TIME_SECTIONS = 2 + _TREND_SECTIONS
VALUE_SECTIONS = 4 + _TREND_SECTIONS


class MalformedSegmentError(Exception):
    """The bytes are not an encoded run; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Timetables:
    """The distinct sequences of times in a segment: the timetable of each series, and where each timetable begins."""

    of_series: U32s
    first: I64s

    @property
    def counts(self) -> I64s:
        """The number of samples of each series."""
        return run_lengths(self.first)[self.of_series]


def pack_times(time: I64s, first: I64s) -> tuple[int, list[bytes]]:
    """Return the number of timetables, and the sections for the times of the series."""
    series = len(first) - 1
    slots = np.full(2 << series.bit_length(), -1, dtype=np.int64)
    same_as, leader = np.empty(series, dtype=np.uint32), np.empty(series, dtype=np.int64)
    found = find_timetables(time, first, slots, same_as, leader)
    starts, ends = first[leader[:found]], first[leader[:found] + 1]
    table_first = run_offsets(ends - starts)
    table = np.empty(table_first[-1], dtype=np.int64)
    copy_runs(time, starts, ends, table)
    return found, [pack(same_as), pack((ends - starts).astype(np.uint32)), *_pack_trends(table, table_first)]


def unpack_timetables(sections: Sequence[bytes], series: int, timetables: int) -> Timetables:
    """Decode the timetable of each series and the lengths of the timetables, without the times."""
    same_as, counts = unpack(sections[0], series, np.uint32), unpack(sections[1], timetables, np.uint32)
    of_series = np.empty(series, dtype=np.uint32)
    if number_timetables(same_as, of_series) != timetables:
        raise MalformedSegmentError("its series and its timetables don't match")
    if not counts.all():
        raise MalformedSegmentError("a series has no samples")
    return Timetables(of_series, run_offsets(counts))


@dataclass(frozen=True, slots=True)
class ChosenTimes:
    """The times of the selected series in a time range, one series after the other. They are the samples `[starts,
    ends)` of each series; both are 0 for a series that has none or is not wanted.
    """

    time: I64s
    starts: I64s
    ends: I64s
    least: int
    greatest: int
    """The bounds of all times of the wanted series, also outside of the range."""


def unpack_times(sections: Sequence[bytes], tables: Timetables, wanted: Mask, times: TimeRange) -> ChosenTimes:
    """Decode the times of the wanted series in a range."""
    needed = np.zeros(len(tables.first) - 1, dtype=np.bool_)
    needed[tables.of_series[wanted]] = True
    table_counts = run_lengths(tables.first)
    trends = _unpack_trends(sections[2:], table_counts, needed)
    starts, ends = np.empty(len(wanted), dtype=np.int64), np.empty(len(wanted), dtype=np.int64)
    time = np.empty(int(table_counts[tables.of_series[wanted]].sum()), dtype=np.int64)
    count, least, greatest, rises = restore_times(
        tables.of_series,
        wanted,
        tables.first,
        trends.begin,
        trends.slope,
        trends.kind,
        trends.level,
        trends.residuals,
        trends.residual_start,
        times.first,
        times.last,
        starts,
        ends,
        time,
    )
    if not rises:
        raise MalformedSegmentError("the times of a series are not ascending")
    # In place, because the kept times may be a small part. There is no other reference yet.
    time.resize(count, refcheck=False)
    return ChosenTimes(time, starts, ends, least, greatest)


def pack_values(value: F64s, first: I64s) -> tuple[int, list[bytes]]:
    """Return the number of odd values, and the sections for the values of the series."""
    samples = len(value)
    digits = np.empty(len(first) - 1, dtype=np.uint16)
    integers, raw = np.empty(samples, dtype=np.int64), np.empty(samples, dtype=np.float64)
    odd_at, odd_bits = np.empty(samples, dtype=np.uint32), np.empty(samples, dtype=np.uint64)
    n_integers, n_raw, n_odd = to_integers(value, first, digits, integers, raw, odd_at, odd_bits)
    integer_first = run_offsets(run_lengths(first)[digits != RAW])
    return n_odd, [
        pack(digits),
        pack(odd_at[:n_odd]),
        pack(odd_bits[:n_odd]),
        pack(raw[:n_raw], _DOUBLES),
        *_pack_trends(integers[:n_integers], integer_first),
    ]


def unpack_values(sections: Sequence[bytes], counts: I64s, odd: int, chosen: ChosenTimes) -> F64s:
    """Decode the values at the chosen times. `counts` is the number of samples of each series."""
    digits, is_raw = _unpack_digits(sections, counts)
    chosen_series = chosen.ends > chosen.starts
    raw = _unpack_raw(sections, counts, is_raw, chosen_series)
    trends = _unpack_trends(sections[4:], counts[~is_raw], chosen_series[~is_raw])
    value = np.empty(len(chosen.time), dtype=np.float64)
    to_values(
        digits,
        counts,
        chosen.starts,
        chosen.ends,
        trends.begin,
        trends.slope,
        trends.kind,
        trends.level,
        trends.residuals,
        trends.residual_start,
        raw,
        value,
    )
    at, bits = _unpack_odd(sections, counts, odd)
    _put_odd(at, bits, counts, chosen, value)
    return value


def unpack_stale_markers(sections: Sequence[bytes], counts: I64s, odd: int, chosen: ChosenTimes) -> F64s:
    """As `unpack_values`, with 0 for every value that is not a staleness marker. Most values are not decompressed."""
    digits, is_raw = _unpack_digits(sections, counts)
    raw = _unpack_raw(sections, counts, is_raw, chosen.ends > chosen.starts)
    value = np.zeros(len(chosen.time), dtype=np.float64)
    to_stale_markers(digits, counts, chosen.starts, chosen.ends, raw.view(np.uint64), value.view(np.uint64))
    at, bits = _unpack_odd(sections, counts, odd)
    stale = bits == STALE
    _put_odd(at[stale], bits[stale], counts, chosen, value)
    return value


def _unpack_digits(sections: Sequence[bytes], counts: I64s) -> tuple[npt.NDArray[np.uint16], Mask]:
    """Return the number of digits of each series, and a mask of the series that are stored as doubles."""
    digits = unpack(sections[0], len(counts), np.uint16)
    is_raw = digits == RAW
    if ((digits > MAX_DIGITS) & ~is_raw).any():
        raise MalformedSegmentError("its values have too many digits")
    return digits, is_raw


def _unpack_raw(sections: Sequence[bytes], counts: I64s, is_raw: Mask, chosen: Mask) -> F64s:
    raw = np.empty(int(counts[is_raw].sum()), dtype=np.float64)
    if (is_raw & chosen).any() or not len(raw):
        _unpack_into(sections[3], raw)
    return raw


def _unpack_odd(sections: Sequence[bytes], counts: I64s, odd: int) -> tuple[U32s, U64s]:
    """Return the indices of the odd values among all samples, and their bits."""
    at, bits = unpack(sections[1], odd, np.uint32), unpack(sections[2], odd, np.uint64)
    if odd and (at[-1] >= counts.sum() or (at[1:] <= at[:-1]).any()):
        raise MalformedSegmentError("its odd values are not in order")
    return at, bits


def _put_odd(at: U32s, bits: U64s, counts: I64s, chosen: ChosenTimes, value: F64s) -> None:
    if not len(at):
        return
    first = run_offsets(counts)
    series = np.searchsorted(first, at, side="right") - 1
    within = at - first[series]
    kept = (chosen.starts[series] <= within) & (within < chosen.ends[series])
    # From a sample's index in its series to its index among the chosen samples.
    shift = run_offsets(chosen.ends - chosen.starts)[:-1] - chosen.starts
    value.view(np.uint64)[(within + shift[series])[kept]] = bits[kept]


@dataclass(frozen=True, slots=True)
class _Trends:
    """Sequences of integers before they are restored. The residuals of unwanted sequences may be missing."""

    begin: I64s
    slope: I64s
    kind: npt.NDArray[np.uint16]
    level: npt.NDArray[np.uint16]
    residuals: I64s
    residual_start: I64s


def _pack_trends(numbers: I64s, first: I64s) -> list[bytes]:
    sequences = len(first) - 1
    kind, level = np.empty(sequences, dtype=np.uint16), np.empty(sequences, dtype=np.uint16)
    slope = np.empty(sequences, dtype=np.int64)
    find_trends(numbers, first, kind, slope, level)
    level_start = _level_starts(run_lengths(first), level)
    residuals = np.empty(level_start[-1], dtype=np.int64)
    write_residuals(numbers, first, kind, slope, level, level_start.copy(), residuals)
    return [
        pack(numbers[first[:-1]]),
        pack(slope),
        pack(kind),
        pack(level),
        *map(pack, _by_level(residuals, level_start)),
    ]


def _unpack_trends(sections: Sequence[bytes], counts: I64s, wanted: Mask) -> _Trends:
    sequences = len(counts)
    begin, slope = unpack(sections[0], sequences, np.int64), unpack(sections[1], sequences, np.int64)
    kind, level = unpack(sections[2], sequences, np.uint16), unpack(sections[3], sequences, np.uint16)
    if (kind > STEP).any() or (level > LEVELS).any():
        raise MalformedSegmentError("it has a trend of an unknown kind")
    level_start = _level_starts(counts, level)
    residuals = np.empty(level_start[-1], dtype=np.int64)
    needed = np.bincount(level[wanted], minlength=LEVELS + 1).tolist()
    for number, (section, part) in enumerate(
        zip(sections[4:], _by_level(residuals, level_start), strict=True), start=1
    ):
        if needed[number] or not len(part):
            _unpack_into(section, part)
    residual_start = np.empty(sequences, dtype=np.int64)
    locate_residuals(counts, level, level_start, residual_start)
    return _Trends(begin, slope, kind, level, residuals, residual_start)


def _level_starts(counts: I64s, level: npt.NDArray[np.uint16]) -> I64s:
    """Return where the residuals of each level start, and the total at the end. Level 0 has none."""
    steps = np.bincount(level, weights=counts - 1, minlength=LEVELS + 1).astype(np.int64)
    steps[0] = 0
    return run_offsets(steps)


def _by_level(residuals: I64s, level_start: I64s) -> Iterator[I64s]:
    for start, end in pairwise(level_start[1:].tolist()):
        yield residuals[start:end]


def pack(numbers: npt.NDArray[Any], config: ChunkConfig = _NUMBERS) -> bytes:
    """Compress numbers; none give no bytes."""
    # pcodec can't encode an empty array.
    return bytes(standalone.simple_compress(numbers, config)) if len(numbers) else b""


def unpack(section: bytes, count: int, kind: type[Any]) -> npt.NDArray[Any]:
    """Decompress exactly `count` numbers of a type; raise `MalformedSegmentError` otherwise."""
    numbers = np.empty(count, dtype=kind)
    _unpack_into(section, numbers)
    return numbers


def _unpack_into(section: bytes, numbers: npt.NDArray[Any]) -> None:
    if not len(numbers):
        if section:
            raise MalformedSegmentError("a section that must be empty is not")
        return
    try:
        progress = standalone.simple_decompress_into(section, numbers)
    except RuntimeError as error:
        raise MalformedSegmentError(f"pcodec can't read a section: {error}") from error
    if progress.n_processed != len(numbers) or not progress.finished:
        raise MalformedSegmentError(f"a section has other than {len(numbers)} numbers")
