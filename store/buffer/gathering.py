"""Bringing the samples of series together, from pages and rows in order of arrival, sorted and without duplicates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s, I64s, U32s, run_places
from strandline.arrays import Rows as Places
from strandline.store.buffer.dictionary import FEW, KnownSeries
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


def gather(
    pages: Sequence[Page], rows: Rows | None, place: I64s, places: int, times: TimeRange = ALL_TIMES
) -> Gathered:
    """The samples of the series whose `place[number]` is not below 0, run by run in the order of their places.

    Pages, and then rows, must be in order of arrival: of two samples of one time the later arrival is kept. Only frames
    with a wanted series are opened, one at a time.
    """
    totals = np.zeros(places, dtype=np.int64)
    opened: list[tuple[Frame, bytes, FrameSeries]] = []
    if pages:
        numbers = np.flatnonzero(place >= 0)
        for page in pages:
            if page.overlaps(times.first, times.last):
                opened += _wanted_frames(page, numbers, place, totals)
    if rows is not None:
        count_rows(rows.series, place, totals)
    first = run_places(totals)
    time, value = np.empty(first[-1], dtype=np.int64), np.empty(first[-1], dtype=np.float64)
    bits, cursor = value.view(np.int64), first[:-1].copy()
    for frame, data, series in opened:
        to = np.empty(len(series.number), dtype=np.int64)
        claim_places(series.number, series.counts, place, cursor, to)
        decode_samples(frame, data, series, to=to, time=time, value=value)
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
    if rows is not None and len(numbers) <= FEW:
        rows = rows.of_few(numbers)
    gathered = gather(pages, rows, places_of(ordered, len(known)), len(ordered), times)
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


def places_of(numbers: U32s, series: int) -> I64s:
    """`place[number]` for series in the order of `numbers`; -1 for every other of so many series."""
    place = np.full(series, -1, dtype=np.int64)
    place[numbers] = np.arange(len(numbers), dtype=np.int64)
    return place


def _wanted_frames(page: Page, numbers: Places, place: I64s, totals: I64s) -> list[tuple[Frame, bytes, FrameSeries]]:
    """Open the frames with series of which some are among `numbers`, which rise; count their samples."""
    wanted = []
    data: bytes | None = None
    for frame in page.frames:
        first, behind = np.searchsorted(numbers, (frame.first_number, frame.last_number + 1))
        if first < behind:
            data = page.stored.load() if data is None else data
            series = decode_series(frame, data)
            if count_runs(series.number, series.counts, place, totals):
                wanted.append((frame, data, series))
    return wanted
