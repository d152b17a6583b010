"""A buffer as it was at one moment, for a query."""

from collections.abc import Mapping

import numpy as np

from strandline.store.buffer.dictionary import KnownSeries
from strandline.store.buffer.gathering import gather_run
from strandline.store.buffer.open_rows import Rows
from strandline.store.buffer.page import Page
from strandline.store.series_run import SeriesKeys, SeriesRun
from strandline.time_range import ALL_TIMES, TimeRange


class BufferView:
    """What was in the buffer when the snapshot was taken; what happens to the buffer later does not show.

    It keeps the pages and rows that it names, those on disk included, for as long as it lives. That memory is not in
    the budget once the buffer itself has let go of them: a view is meant for one query.
    """

    def __init__(self, known: KnownSeries, pages: Mapping[int, tuple[Page, ...]], rows: Rows) -> None:
        """`pages` are those of each group that was not released, in order of arrival; `rows` arrived after them."""
        self._known = known
        self._pages = pages
        self._rows = rows

    def read(self, keys: SeriesKeys | None = None, times: TimeRange = ALL_TIMES) -> SeriesRun:
        """The samples of these series, or of all, in a range of times. A series without one is not among them.

        Raises `SpillDamaged` if a page that it needs can't be read back from disk.
        """
        known = self._known
        numbers = np.arange(len(known), dtype=np.uint32) if keys is None else known.find(keys)
        groups = np.unique(known.group[numbers]).tolist()
        pages = [page for group in groups for page in self._pages.get(group, ())]
        run, _ = gather_run(pages, self._rows, known, numbers, times)
        return run
