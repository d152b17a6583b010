"""From rows in order of arrival to a page for each group."""

import numpy as np

from strandline.store.buffer.dictionary import KnownSeries
from strandline.store.buffer.gathering import WantedNumbers, gather
from strandline.store.buffer.open_rows import Rows
from strandline.store.buffer.page import Page, page_of
from strandline.store.buffer.page_codec import Runs


def seal(rows: Rows, known: KnownSeries, number: int) -> tuple[dict[int, Page], int]:
    """A page for each group that has a sample, and how many samples a later one replaced.

    Rows are sorted by counting: no two keys are ever compared, because the dictionary has numbered the series.
    """
    order = known.by_group()
    gathered = gather((), rows, WantedNumbers.every(order.place), len(known))
    runs = Runs(order.number[gathered.place], gathered.first_sample, gathered.time, gathered.value)
    bounds = np.searchsorted(gathered.place, order.group_first)
    pages = {
        group: page_of(runs.part(int(bounds[group]), int(bounds[group + 1])), seal=number, level=0)
        for group in range(known.groups)
        if bounds[group] < bounds[group + 1]
    }
    return pages, gathered.dropped
