"""Collects the samples of series from pages and rows in order of arrival, sorted and without duplicates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import F64s, I64s, U32s, run_offsets
from strandline.arrays import Rows as Positions
from strandline.store.buffer.dictionary import KnownSeries
from strandline.store.buffer.kernels.rows import count_rows, scatter_rows
from strandline.store.buffer.kernels.runs import count_runs, reserve_slots, sort_and_deduplicate
from strandline.store.buffer.open_rows import Rows
from strandline.store.buffer.page import Page
from strandline.store.buffer.page_codec import Frame, FrameSeries, decode_samples, decode_series
from strandline.store.buffer.value_search import MAX_SCANNED_VALUES
from strandline.store.series_run import SeriesRun
from strandline.time_range import ALL_TIMES, TimeRange


@dataclass(frozen=True, slots=True)
class CollectedSamples:
    """Runs of the positions that have a sample, in ascending order, and the number of samples that a later one
    replaced.
    """

    position: Positions
    first_sample: I64s
    time: I64s
    value: F64s
    dropped: int

    def __len__(self) -> int:
        return len(self.position)


@dataclass(frozen=True, slots=True)
class WantedNumbers:
    """Series of a buffer by ascending number, and the position of each in the result."""

    number: U32s
    position: I64s

    def __len__(self) -> int:
        return len(self.number)

    @classmethod
    def in_order(cls, numbers: U32s) -> "WantedNumbers":
        """Want these series, in this order."""
        position = np.argsort(numbers)
        return cls(numbers[position], position)

    @classmethod
    def every(cls, position: I64s) -> "WantedNumbers":
        """Want all series; `position` is the position of each."""
        return cls(np.arange(len(position), dtype=np.uint32), position)

    def within(self, frame: Frame) -> "WantedNumbers":
        """Return those whose numbers are within the bounds of a frame."""
        first, stop = self.number.searchsorted(np.array((frame.first_number, frame.last_number + 1)))
        return WantedNumbers(self.number[first:stop], self.position[first:stop])


def collect_samples(
    pages: Sequence[Page], rows: Rows | None, wanted: WantedNumbers, series: int, times: TimeRange = ALL_TIMES
) -> CollectedSamples:
    """Collect the samples of the wanted ones of `series` series, run by run in the order of their positions.

    Pages, and then rows, must be in order of arrival: of two samples with the same time, the later arrival is kept.
    Only frames with a wanted series are opened, one at a time.
    """
    positions = len(wanted)
    totals = np.zeros(positions, dtype=np.int64)
    opened: list[_OpenedFrame] = []
    for page in pages:
        if page.overlaps(times.first, times.last):
            opened += _wanted_frames(page, wanted, totals)
    if rows is not None:
        rows, position = _rows_with_positions(rows, wanted, series)
        count_rows(rows.series, position, totals)
    first = run_offsets(totals)
    time, value = np.empty(first[-1], dtype=np.int64), np.empty(first[-1], dtype=np.float64)
    bits, cursor = value.view(np.int64), first[:-1].copy()
    for one in opened:
        to = np.empty(len(one.series.number), dtype=np.int64)
        reserve_slots(one.series.number, one.series.counts, one.wanted.number, one.wanted.position, cursor, to)
        decode_samples(one.frame, one.data, one.series, to=to, time=time, value=value)
    if rows is not None:
        scatter_rows(rows.series, rows.time, rows.value.view(np.int64), position, cursor, time, bits)
    kept, kept_first = np.empty(positions, dtype=np.int64), np.empty(positions + 1, dtype=np.int64)
    n_kept, dropped = sort_and_deduplicate(first, time, bits, times.first, times.last, kept, kept_first)
    stop = int(kept_first[n_kept])
    return CollectedSamples(kept[:n_kept], kept_first[: n_kept + 1], time[:stop], value[:stop], dropped)


def collect_run(
    pages: Sequence[Page], rows: Rows | None, known: KnownSeries, numbers: U32s, times: TimeRange = ALL_TIMES
) -> tuple[SeriesRun, int]:
    """Return the samples of some series in the order of their keys, and the number of samples that a later one
    replaced.
    """
    ordered = known.sorted_by_key(numbers)
    collected = collect_samples(pages, rows, WantedNumbers.in_order(ordered), len(known), times)
    found, keys = ordered[collected.position], known.keys
    run = SeriesRun(
        metric=keys.metric[found],
        key_high=keys.key_high[found],
        key_low=keys.key_low[found],
        first_sample=collected.first_sample,
        time=collected.time,
        value=collected.value,
    )
    return run, collected.dropped


@dataclass(frozen=True, slots=True)
class _OpenedFrame:
    """A frame with a wanted series, the bytes of its page, and the series that are wanted."""

    frame: Frame
    data: bytes
    series: FrameSeries
    wanted: WantedNumbers


def _wanted_frames(page: Page, wanted: WantedNumbers, totals: I64s) -> list[_OpenedFrame]:
    """Open the frames of a page that have a wanted series, and count their samples."""
    opened = []
    data: bytes | None = None
    for frame in page.frames_with(wanted.number):
        data = page.stored.load() if data is None else data
        series, here = decode_series(frame, data), wanted.within(frame)
        if count_runs(series.number, series.counts, here.number, here.position, totals):
            opened.append(_OpenedFrame(frame, data, series, here))
    return opened


def _rows_with_positions(rows: Rows, wanted: WantedNumbers, series: int) -> tuple[Rows, I64s]:
    """Return rows that include those of the wanted series, and the position of each series number in them; -1 if not
    wanted.
    """
    if len(wanted) <= MAX_SCANNED_VALUES:
        # A column with an entry per series would cost more than everything else.
        few = rows.of_series(wanted.number)
        return replace(few, series=wanted.number.searchsorted(few.series).astype(np.uint32)), wanted.position
    position = np.full(series, -1, dtype=np.int64)
    position[wanted.number] = wanted.position
    return rows, position
