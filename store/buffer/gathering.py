"""Bringing the samples of series together, from pages and rows in order of arrival, sorted and without duplicates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import F64s, I64s, U32s, run_offsets
from strandline.arrays import Rows as Places
from strandline.store.buffer.dictionary import KnownSeries
from strandline.store.buffer.few import FEW
from strandline.store.buffer.kernels.rows import count_rows, scatter_rows
from strandline.store.buffer.kernels.runs import claim_places, count_runs, settle
from strandline.store.buffer.open_rows import Rows
from strandline.store.buffer.page import Page
from strandline.store.buffer.page_codec import Frame, FrameSeries, decode_samples, decode_series
from strandline.store.series_run import SeriesRun
from strandline.time_range import ALL_TIMES, TimeRange


@dataclass(frozen=True, slots=True)
class Gathered:
    """Runs of the places that have a sample, rising; and how many samples a later one of the same time replaced."""

    place: Places
    first_sample: I64s
    time: I64s
    value: F64s
    dropped: int

    def __len__(self) -> int:
        return len(self.place)


@dataclass(frozen=True, slots=True)
class WantedNumbers:
    """Series of a buffer by rising number, and the place of each in what is gathered."""

    number: U32s
    place: I64s

    def __len__(self) -> int:
        return len(self.number)

    @classmethod
    def in_order(cls, numbers: U32s) -> "WantedNumbers":
        """These, whose places are those that they have here."""
        place = np.argsort(numbers)
        return cls(numbers[place], place)

    @classmethod
    def every(cls, place: I64s) -> "WantedNumbers":
        """All series there are, the place of each."""
        return cls(np.arange(len(place), dtype=np.uint32), place)

    def within(self, frame: Frame) -> "WantedNumbers":
        """Those whose numbers lie between the bounds of a frame."""
        first, behind = self.number.searchsorted(np.array((frame.first_number, frame.last_number + 1)))
        return WantedNumbers(self.number[first:behind], self.place[first:behind])


def gather(
    pages: Sequence[Page], rows: Rows | None, wanted: WantedNumbers, series: int, times: TimeRange = ALL_TIMES
) -> Gathered:
    """The samples of some of so many series, run by run in the order of their places.

    Pages, and then rows, must be in order of arrival: of two samples of one time the later arrival is kept. Only frames
    with a wanted series are opened, one at a time.
    """
    places = len(wanted)
    totals = np.zeros(places, dtype=np.int64)
    opened: list[_OpenedFrame] = []
    for page in pages:
        if page.overlaps(times.first, times.last):
            opened += _wanted_frames(page, wanted, totals)
    if rows is not None:
        rows, place = _placed_rows(rows, wanted, series)
        count_rows(rows.series, place, totals)
    first = run_offsets(totals)
    time, value = np.empty(first[-1], dtype=np.int64), np.empty(first[-1], dtype=np.float64)
    bits, cursor = value.view(np.int64), first[:-1].copy()
    for one in opened:
        to = np.empty(len(one.series.number), dtype=np.int64)
        claim_places(one.series.number, one.series.counts, one.wanted.number, one.wanted.place, cursor, to)
        decode_samples(one.frame, one.data, one.series, to=to, time=time, value=value)
    if rows is not None:
        scatter_rows(rows.series, rows.time, rows.value.view(np.int64), place, cursor, time, bits)
    kept, kept_first = np.empty(places, dtype=np.int64), np.empty(places + 1, dtype=np.int64)
    n_kept, dropped = settle(first, time, bits, times.first, times.last, kept, kept_first)
    behind = int(kept_first[n_kept])
    return Gathered(kept[:n_kept], kept_first[: n_kept + 1], time[:behind], value[:behind], dropped)


def gather_run(
    pages: Sequence[Page], rows: Rows | None, known: KnownSeries, numbers: U32s, times: TimeRange = ALL_TIMES
) -> tuple[SeriesRun, int]:
    """The samples of some series in the order of their keys, and how many were replaced by a later arrival."""
    ordered = known.sorted_by_key(numbers)
    gathered = gather(pages, rows, WantedNumbers.in_order(ordered), len(known), times)
    found, keys = ordered[gathered.place], known.keys
    run = SeriesRun(
        metric=keys.metric[found],
        key_high=keys.key_high[found],
        key_low=keys.key_low[found],
        first_sample=gathered.first_sample,
        time=gathered.time,
        value=gathered.value,
    )
    return run, gathered.dropped


@dataclass(frozen=True, slots=True)
class _OpenedFrame:
    """A frame with a wanted series, the bytes of its page, and what is wanted of it."""

    frame: Frame
    data: bytes
    series: FrameSeries
    wanted: WantedNumbers


def _wanted_frames(page: Page, wanted: WantedNumbers, totals: I64s) -> list[_OpenedFrame]:
    """Open the frames of a page that have a wanted series; count their samples."""
    opened = []
    data: bytes | None = None
    for frame in page.frames_with(wanted.number):
        data = page.stored.load() if data is None else data
        series, here = decode_series(frame, data), wanted.within(frame)
        if count_runs(series.number, series.counts, here.number, here.place, totals):
            opened.append(_OpenedFrame(frame, data, series, here))
    return opened


def _placed_rows(rows: Rows, wanted: WantedNumbers, series: int) -> tuple[Rows, I64s]:
    """Rows with those of the wanted series among them, and the place of each number that stands in them; -1 for one
    that is not wanted.
    """
    if len(wanted) <= FEW:
        # A column of places as long as there are series would take longer than all of the rest.
        few = rows.of_few(wanted.number)
        return replace(few, series=wanted.number.searchsorted(few.series).astype(np.uint32)), wanted.place
    place = np.full(series, -1, dtype=np.int64)
    place[wanted.number] = wanted.place
    return rows, place
