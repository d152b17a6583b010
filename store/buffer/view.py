"""A buffer as it was at one moment, for a query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s
from strandline.store.buffer.collecting import collect_run
from strandline.store.buffer.dictionary import KnownSeries
from strandline.store.buffer.open_rows import Rows
from strandline.store.buffer.page import Page
from strandline.store.series_run import SeriesKeys, SeriesRun
from strandline.time_range import ALL_TIMES, LATEST, TimeRange, overlap_fraction


@dataclass(frozen=True, slots=True)
class BufferVersion:
    """What a buffer had received at one moment: its number in this process, the number of seals, and the rows since the
    last.
    """

    buffer: int
    seals: int
    rows: int


@dataclass(frozen=True, slots=True)
class SealedTimes:
    """The minimum sample time of each seal of a buffer, in order, as of one moment. The list only grows."""

    buffer: int
    least: Sequence[int]
    seals: int


class BufferView:
    """The contents of the buffer when the snapshot was taken; later changes have no effect.

    It keeps the pages and rows that it references, including those on disk, as long as it exists. Once the buffer
    itself has dropped them, that memory is not in the budget: a view is meant for one query.
    """

    def __init__(
        self, known: KnownSeries, pages: Mapping[int, tuple[Page, ...]], rows: Rows, sealed: SealedTimes
    ) -> None:
        """`pages` are those of each group that was not released, in order of arrival; `rows` arrived after them."""
        self._known = known
        self._pages = pages
        self._rows = rows
        self._sealed = sealed

    @property
    def version(self) -> BufferVersion:
        """What the buffer had received."""
        return BufferVersion(self._sealed.buffer, self._sealed.seals, len(self._rows))

    def least_time_since(self, version: BufferVersion | None) -> int:
        """Return the minimum time of the samples that arrived after a version, or of all if it is not of this buffer;
        `LATEST` if there are none. The result may be lower: rows of the version that were sealed later count as later
        arrivals.
        """
        same = version if version is not None and version.buffer == self._sealed.buffer else None
        seals, rows = (same.seals, same.rows) if same is not None else (0, 0)
        times = self._rows.time[rows:] if seals == self._sealed.seals else self._rows.time
        return min(
            [LATEST, *self._sealed.least[seals : self._sealed.seals], *([int(times.min())] if len(times) else [])]
        )

    def samples_per_series(self, times: TimeRange) -> F64s:
        """Estimate the samples per series of each group in a time range."""
        known = self._known
        series = np.maximum(known.in_group, 1)
        samples = np.zeros(known.groups, dtype=np.float64)
        for group, pages in self._pages.items():
            shares = (
                page.samples * overlap_fraction(times, TimeRange(page.first_time, page.last_time)) for page in pages
            )
            samples[group] = sum(shares)
        each: F64s = samples / series + len(self._rows) / max(len(known), 1)
        return each

    def read(self, keys: SeriesKeys | None = None, times: TimeRange = ALL_TIMES) -> SeriesRun:
        """Return the samples of these series, or of all, in a time range. Series without samples are omitted.

        Raises `SpillDamaged` if a required page can't be read back from disk.
        """
        every = (page for pages in self._pages.values() for page in pages)
        if not len(self._rows) and not any(page.overlaps(times.first, times.last) for page in every):
            return SeriesRun.empty()
        known = self._known
        numbers = np.arange(len(known), dtype=np.uint32) if keys is None else known.find(keys)
        groups = np.unique(known.group[numbers]).tolist()
        pages = [page for group in groups for page in self._pages.get(group, ())]
        run, _ = collect_run(pages, self._rows, known, numbers, times)
        return run
