"""Making pages: sealing rows into pages, and merging short pages.

A series costs its page some bytes whatever the number of its samples, so pages with short runs are merged into pages
with longer ones. Pages with long runs stay as they are: rewriting them would save little.
"""

from collections.abc import Sequence

import numpy as np

from strandline.store.buffer.collecting import WantedNumbers, collect_samples
from strandline.store.buffer.dictionary import KnownSeries
from strandline.store.buffer.open_rows import Rows
from strandline.store.buffer.page import Page, page_of
from strandline.store.buffer.page_codec import Runs

PAGES_PER_MERGE = 8
LONG_RUN_SAMPLES = 4  # Mean samples per series of a page: from this length, a merge saves less than a third.
MAX_MERGE_SAMPLES = 1 << 23  # Bounds the time and memory of a merge.


def seal(rows: Rows, known: KnownSeries, number: int) -> tuple[dict[int, Page], int]:
    """Make a page for each group that has a sample. Also return the number of samples that a later one replaced.

    Rows are sorted by counting: no keys are compared, because the dictionary has numbered the series.
    """
    order = known.by_group()
    collected = collect_samples((), rows, WantedNumbers.every(order.position), len(known))
    runs = Runs(order.number[collected.position], collected.first_sample, collected.time, collected.value)
    bounds = np.searchsorted(collected.position, order.group_first)
    pages = {
        group: page_of(runs.part(int(bounds[group]), int(bounds[group + 1])), seal=number, level=0)
        for group in range(known.groups)
        if bounds[group] < bounds[group + 1]
    }
    return pages, collected.dropped


def next_merge(pages: Sequence[Page]) -> tuple[Page, ...]:
    """Return the oldest pages of a group that are worth merging: `PAGES_PER_MERGE` neighbours of one level; or none.

    A merge raises the level of its samples, and needs that many pages of a level. So a sample is rewritten at most
    log(pages) times. Pages on disk stay there: reading them would cost the memory for which they were spilled.
    """
    for first in range(len(pages) - PAGES_PER_MERGE + 1):
        some = tuple(pages[first : first + PAGES_PER_MERGE])
        if (
            all(_is_short(page) and page.level == some[0].level for page in some)
            and sum(page.samples for page in some) <= MAX_MERGE_SAMPLES
        ):
            return some
    return ()


def merge(pages: Sequence[Page], known: KnownSeries, group: int) -> tuple[Page, int]:
    """Merge neighbouring pages of one group into one page. Also return the number of samples that a later one replaced.
    `known` must include the series of all pages.
    """
    numbers = known.of_group(group)
    collected = collect_samples(pages, None, WantedNumbers.in_order(numbers), len(known))
    runs = Runs(numbers[collected.position], collected.first_sample, collected.time, collected.value)
    return page_of(runs, seal=pages[0].seal, level=pages[0].level + 1), collected.dropped


def _is_short(page: Page) -> bool:
    return page.samples < LONG_RUN_SAMPLES * page.series and page.stored.in_memory > 0
