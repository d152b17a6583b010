from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.buffer.collecting import WantedNumbers, collect_samples
from strandline.store.buffer.dictionary import Dictionary, KnownSeries
from strandline.store.buffer.page import Page, PageBytes, page_of
from strandline.store.buffer.page_building import (
    LONG_RUN_SAMPLES,
    MAX_MERGE_SAMPLES,
    PAGES_PER_MERGE,
    merge,
    next_merge,
)
from strandline.store.buffer.page_codec import Runs
from strandline.store.buffer.spill import SpillFolder
from support.buffer_model import key_columns

pytestmark = pytest.mark.unit


def page(level: int = 0, *, series: int = 100, samples: int = 100) -> Page:
    """A page of that shape, without samples."""
    return Page(0, level, series, samples, 0, 0, (), PageBytes(b"data"))


def test_pages_are_merged_once_there_are_enough() -> None:
    pages = [page() for _ in range(PAGES_PER_MERGE)]
    assert next_merge(pages[1:]) == ()
    assert next_merge(pages) == tuple(pages)


def test_the_oldest_are_merged_first() -> None:
    pages = [page() for _ in range(2 * PAGES_PER_MERGE)]
    assert next_merge(pages) == tuple(pages[:PAGES_PER_MERGE])


def test_only_neighbours_of_one_level_are_merged() -> None:
    short = [page() for _ in range(PAGES_PER_MERGE)]
    assert next_merge([*short[:4], page(1), *short[4:]]) == ()
    assert next_merge([page(1), *short]) == tuple(short)
    merged = [page(1) for _ in range(PAGES_PER_MERGE)]
    assert next_merge([*merged, *short[:3]]) == tuple(merged)


def test_pages_with_long_runs_are_not_merged() -> None:
    assert next_merge([page(samples=100 * LONG_RUN_SAMPLES) for _ in range(PAGES_PER_MERGE)]) == ()
    assert next_merge([page(samples=100 * LONG_RUN_SAMPLES - 1) for _ in range(PAGES_PER_MERGE)]) != ()


def test_a_merge_is_bounded() -> None:
    most = MAX_MERGE_SAMPLES // PAGES_PER_MERGE
    assert next_merge([page(series=most, samples=most) for _ in range(PAGES_PER_MERGE)]) != ()
    assert next_merge([page(series=most, samples=most + 1) for _ in range(PAGES_PER_MERGE)]) == ()


def test_pages_on_disk_stay_there(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path, 1000)
    pages = [page() for _ in range(PAGES_PER_MERGE)]
    pages[2].stored.move_to(folder.write(b"data", 1, 1))
    assert next_merge(pages) == ()


@given(st.integers(1, 700))
def test_no_sample_is_written_again_more_often_than_the_logarithm_of_the_pages(seals: int) -> None:
    pages: list[Page] = []
    for _ in range(seals):
        pages.append(page())
        while some := next_merge(pages):
            first = pages.index(some[0])
            pages[first : first + len(some)] = [page(some[0].level + 1, samples=100)]
    assert max(page.level for page in pages) <= np.log(seals) / np.log(PAGES_PER_MERGE)
    assert len(pages) <= (PAGES_PER_MERGE - 1) * (1 + np.log(seals) / np.log(PAGES_PER_MERGE))


def known(series: int) -> KnownSeries:
    dictionary = Dictionary(2)
    dictionary.define(key_columns([(2 * number % 4, 0, number) for number in range(series)]))
    return dictionary.known()


def sealed(samples: dict[int, list[tuple[int, float]]]) -> Page:
    numbers = sorted(samples)
    flat = [sample for number in numbers for sample in samples[number]]
    runs = Runs(
        np.array(numbers, dtype=np.uint32),
        np.cumsum([0] + [len(samples[number]) for number in numbers], dtype=np.int64),
        np.array([time for time, _ in flat], dtype=np.int64),
        np.array([value for _, value in flat]),
    )
    return page_of(runs, seal=5, level=0)


def test_a_merged_page_has_the_later_of_two_samples_and_counts_those_dropped() -> None:
    one, two = sealed({0: [(1, 1.0), (5, 5.0)], 3: [(1, 1.0)]}), sealed({0: [(3, 3.0), (5, 50.0)], 1: [(9, 9.0)]})
    merged, dropped = merge([one, two], known(4), 0)
    assert dropped == 1
    assert (merged.series, merged.samples, merged.first_time, merged.last_time) == (3, 5, 1, 9)
    assert (merged.level, merged.seal) == (1, 5)
    collected = collect_samples([merged], None, WantedNumbers.in_order(np.arange(4, dtype=np.uint32)), 4)
    assert collected.position.tolist() == [0, 1, 3]
    assert collected.time.tolist() == [1, 3, 5, 9, 1]
    assert collected.value.tolist() == [1.0, 3.0, 50.0, 9.0, 1.0]
