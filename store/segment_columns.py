"""The columns of a segment as sections of bytes: what is compressed, and how.

Samples are not compressed as they are. Series that were scraped together have the same times, which are stored once, as
a *timetable*. Values that are decimal numbers become whole numbers. Times and whole numbers then become a trend and
what is left over (see the kernels of the same names), and that goes through pcodec. Other values go through pcodec as
the doubles that they are, bit for bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from pcodec import ChunkConfig, DeltaSpec, ModeSpec, standalone

from strandline.arrays import F64s, I64s, U32s, U64s, run_lengths, run_offsets
from strandline.store.kernels.decimals import MOST_DIGITS, RAW, STALE, to_stale_markers, to_values, to_whole
from strandline.store.kernels.timetables import copy_runs, find_timetables, number_timetables, restore_times
from strandline.store.kernels.trends import LEVELS, STEP, find_trends, place_rests, take_rests
from strandline.store.selecting import Mask
from strandline.time_range import TimeRange

# pcodec's own default. Level 6 is a tenth faster and 1 % larger; from 9 on doubles take twice as long for nothing.
COMPRESSION = 8
# Numbers whose trend is known already: looking for one more costs time and finds nothing.
_NUMBERS = ChunkConfig(compression_level=COMPRESSION, mode_spec=ModeSpec.classic(), delta_spec=DeltaSpec.no_op())
_DOUBLES = ChunkConfig(compression_level=COMPRESSION)

_TREND_SECTIONS = 4 + LEVELS
TIME_SECTIONS = 2 + _TREND_SECTIONS
VALUE_SECTIONS = 4 + _TREND_SECTIONS


class UnsoundError(Exception):
    """Bytes that no run was ever encoded to; the text says why."""


@dataclass(frozen=True, slots=True)
class Timetables:
    """The distinct sequences of times in a segment: which each series has, and where each begins among them all."""

    of_series: U32s
    first: I64s

    @property
    def counts(self) -> I64s:
        """How many samples each series has."""
        return run_lengths(self.first)[self.of_series]


def pack_times(time: I64s, first: I64s) -> tuple[int, list[bytes]]:
    """Sections for the times of series, and how many timetables they have."""
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
    """Which series has which timetable, and how long they are, without the times themselves."""
    same_as, counts = unpack(sections[0], series, np.uint32), unpack(sections[1], timetables, np.uint32)
    of_series = np.empty(series, dtype=np.uint32)
    if number_timetables(same_as, of_series) != timetables:
        raise UnsoundError("its series name other timetables than it has")
    if not counts.all():
        raise UnsoundError("a series has no samples")
    return Timetables(of_series, run_offsets(counts))


@dataclass(frozen=True, slots=True)
class ChosenTimes:
    """The times of series that lie in a range, one series behind the other: those from `starts` up to, not including,
    `ends` of each series, which are both 0 for one that has none there or is not wanted.
    """

    time: I64s
    starts: I64s
    ends: I64s
    least: int
    greatest: int
    """The bounds of the wanted series' times, in the range or not."""


def unpack_times(sections: Sequence[bytes], tables: Timetables, wanted: Mask, times: TimeRange) -> ChosenTimes:
    """The times of the wanted series in a range."""
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
        trends.way,
        trends.level,
        trends.rests,
        trends.rest_at,
        times.first,
        times.last,
        starts,
        ends,
        time,
    )
    if not rises:
        raise UnsoundError("the times of a series do not rise")
    # In place: what was kept may be a small part of it. Nothing else has the column yet.
    time.resize(count, refcheck=False)
    return ChosenTimes(time, starts, ends, least, greatest)


def pack_values(value: F64s, first: I64s) -> tuple[int, list[bytes]]:
    """Sections for the values of series, and how many odd ones there are."""
    samples = len(value)
    digits = np.empty(len(first) - 1, dtype=np.uint16)
    whole, raw = np.empty(samples, dtype=np.int64), np.empty(samples, dtype=np.float64)
    odd_at, odd_bits = np.empty(samples, dtype=np.uint32), np.empty(samples, dtype=np.uint64)
    n_whole, n_raw, n_odd = to_whole(value, first, digits, whole, raw, odd_at, odd_bits)
    whole_first = run_offsets(run_lengths(first)[digits != RAW])
    return n_odd, [
        pack(digits),
        pack(odd_at[:n_odd]),
        pack(odd_bits[:n_odd]),
        pack(raw[:n_raw], _DOUBLES),
        *_pack_trends(whole[:n_whole], whole_first),
    ]


def unpack_values(sections: Sequence[bytes], counts: I64s, odd: int, chosen: ChosenTimes) -> F64s:
    """The values at some times of series with so many samples each."""
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
        trends.way,
        trends.level,
        trends.rests,
        trends.rest_at,
        raw,
        value,
    )
    at, bits = _unpack_odd(sections, counts, odd)
    _put_odd(at, bits, counts, chosen, value)
    return value


def unpack_stale_markers(sections: Sequence[bytes], counts: I64s, odd: int, chosen: ChosenTimes) -> F64s:
    """The same with 0 for every value that is not a staleness marker. Most values are not decompressed for it."""
    digits, is_raw = _unpack_digits(sections, counts)
    raw = _unpack_raw(sections, counts, is_raw, chosen.ends > chosen.starts)
    value = np.zeros(len(chosen.time), dtype=np.float64)
    to_stale_markers(digits, counts, chosen.starts, chosen.ends, raw.view(np.uint64), value.view(np.uint64))
    at, bits = _unpack_odd(sections, counts, odd)
    stale = bits == STALE
    _put_odd(at[stale], bits[stale], counts, chosen, value)
    return value


def _unpack_digits(sections: Sequence[bytes], counts: I64s) -> tuple[npt.NDArray[np.uint16], Mask]:
    """The digits of each series' values, and whether they are doubles instead."""
    digits = unpack(sections[0], len(counts), np.uint16)
    is_raw = digits == RAW
    if ((digits > MOST_DIGITS) & ~is_raw).any():
        raise UnsoundError("its values have more digits than there are")
    return digits, is_raw


def _unpack_raw(sections: Sequence[bytes], counts: I64s, is_raw: Mask, chosen: Mask) -> F64s:
    raw = np.empty(int(counts[is_raw].sum()), dtype=np.float64)
    if (is_raw & chosen).any() or not len(raw):
        _unpack_into(sections[3], raw)
    return raw


def _unpack_odd(sections: Sequence[bytes], counts: I64s, odd: int) -> tuple[U32s, U64s]:
    """Where odd values are among all samples, and their bits."""
    at, bits = unpack(sections[1], odd, np.uint32), unpack(sections[2], odd, np.uint64)
    if odd and (at[-1] >= counts.sum() or (at[1:] <= at[:-1]).any()):
        raise UnsoundError("its odd values are not in order")
    return at, bits


def _put_odd(at: U32s, bits: U64s, counts: I64s, chosen: ChosenTimes, value: F64s) -> None:
    if not len(at):
        return
    first = run_offsets(counts)
    series = np.searchsorted(first, at, side="right") - 1
    within = at - first[series]
    kept = (chosen.starts[series] <= within) & (within < chosen.ends[series])
    # From a sample's place in its series to its place among the chosen ones.
    shift = run_offsets(chosen.ends - chosen.starts)[:-1] - chosen.starts
    value.view(np.uint64)[(within + shift[series])[kept]] = bits[kept]


@dataclass(frozen=True, slots=True)
class _Trends:
    """Sequences of whole numbers that are not restored yet; of those that are not wanted, rests may be missing."""

    begin: I64s
    slope: I64s
    way: npt.NDArray[np.uint16]
    level: npt.NDArray[np.uint16]
    rests: I64s
    rest_at: I64s


def _pack_trends(numbers: I64s, first: I64s) -> list[bytes]:
    sequences = len(first) - 1
    way, level = np.empty(sequences, dtype=np.uint16), np.empty(sequences, dtype=np.uint16)
    slope = np.empty(sequences, dtype=np.int64)
    find_trends(numbers, first, way, slope, level)
    place = _places(run_lengths(first), level)
    rests = np.empty(place[-1], dtype=np.int64)
    take_rests(numbers, first, way, slope, level, place.copy(), rests)
    return [pack(numbers[first[:-1]]), pack(slope), pack(way), pack(level), *map(pack, _by_level(rests, place))]


def _unpack_trends(sections: Sequence[bytes], counts: I64s, wanted: Mask) -> _Trends:
    sequences = len(counts)
    begin, slope = unpack(sections[0], sequences, np.int64), unpack(sections[1], sequences, np.int64)
    way, level = unpack(sections[2], sequences, np.uint16), unpack(sections[3], sequences, np.uint16)
    if (way > STEP).any() or (level > LEVELS).any():
        raise UnsoundError("it has a trend of an unknown kind")
    place = _places(counts, level)
    rests = np.empty(place[-1], dtype=np.int64)
    needed = np.bincount(level[wanted], minlength=LEVELS + 1).tolist()
    for number, (section, part) in enumerate(zip(sections[4:], _by_level(rests, place), strict=True), start=1):
        if needed[number] or not len(part):
            _unpack_into(section, part)
    rest_at = np.empty(sequences, dtype=np.int64)
    place_rests(counts, level, place, rest_at)
    return _Trends(begin, slope, way, level, rests, rest_at)


def _places(counts: I64s, level: npt.NDArray[np.uint16]) -> I64s:
    """Where the rests of each level begin; level 0 has none, and behind the last stands where all end."""
    steps = np.bincount(level, weights=counts - 1, minlength=LEVELS + 1).astype(np.int64)
    steps[0] = 0
    return run_offsets(steps)


def _by_level(rests: I64s, place: I64s) -> Iterator[I64s]:
    for start, end in pairwise(place[1:].tolist()):
        yield rests[start:end]


def pack(numbers: npt.NDArray[Any], config: ChunkConfig = _NUMBERS) -> bytes:
    """Compress some numbers."""
    # pcodec has no way to say "none of them".
    return bytes(standalone.simple_compress(numbers, config)) if len(numbers) else b""


def unpack(section: bytes, count: int, kind: type[Any]) -> npt.NDArray[Any]:
    """So many numbers of a kind; anything else is unsound."""
    numbers = np.empty(count, dtype=kind)
    _unpack_into(section, numbers)
    return numbers


def _unpack_into(section: bytes, numbers: npt.NDArray[Any]) -> None:
    if not len(numbers):
        if section:
            raise UnsoundError("it has numbers where there are none")
        return
    try:
        progress = standalone.simple_decompress_into(section, numbers)
    except RuntimeError as error:
        raise UnsoundError(f"pcodec can't read a section: {error}") from error
    if progress.n_processed != len(numbers) or not progress.finished:
        raise UnsoundError(f"a section does not hold the {len(numbers)} numbers that it should")
