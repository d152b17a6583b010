import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.shard.read_blocks import cut_blocks, samples_per_series
from strandline.store.rows import GroupRow
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesKey
from strandline.time_range import TimeRange

pytestmark = pytest.mark.unit

GROUPS = 3


def keys_of(selected: WantedSeries) -> list[SeriesKey]:
    return [selected.key(place) for place in range(len(selected))]


def row(group: int, *, series: int, samples: int, times: tuple[int, int] | None) -> GroupRow:
    least_time, greatest_time = times or (None, None)
    return GroupRow(7, group, "a", 1, series, samples, least_time, greatest_time, b"", 1, 9, 9, "w", 0)


@given(
    st.sets(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3)), max_size=40),
    st.lists(st.floats(0, 50), min_size=GROUPS, max_size=GROUPS),
    st.integers(1, 200),
)
def test_each_series_is_in_one_block_and_no_block_of_several_exceeds_its_samples(
    keys: set[tuple[int, int, int]], each: list[float], most: int
) -> None:
    selected = WantedSeries.of(SeriesKey(*key) for key in keys)
    blocks = [keys_of(block) for block in cut_blocks(selected, GROUPS, np.array(each), most)]
    assert sorted(key for block in blocks for key in block) == keys_of(selected)
    for block in blocks:
        assert block == sorted(block)
        assert len(block) == 1 or sum(max(1.0, each[key.metric % GROUPS]) for key in block) <= most + 1e-6


def test_groups_that_fit_are_not_divided() -> None:
    selected = WantedSeries.of(SeriesKey(metric, 0, low) for metric in range(3) for low in range(10))
    blocks = cut_blocks(selected, GROUPS, np.array([4.0, 4.0, 12.0]), 80)
    assert [(set((block.metric % np.uint64(GROUPS)).tolist()), len(block)) for block in blocks] == [
        ({0, 1}, 20),
        ({2}, 5),
        ({2}, 5),
    ]


def test_samples_of_a_series_are_those_of_all_rows_in_the_time_range() -> None:
    rows = [
        row(0, series=10, samples=1_000, times=(0, 99)),
        row(0, series=20, samples=1_000, times=(100, 199)),
        row(1, series=10, samples=1_000, times=(50, 149)),
        row(2, series=0, samples=0, times=None),
    ]
    assert samples_per_series(rows, GROUPS, TimeRange(50, 149)).tolist() == [75.0, 100.0, 0.0]
