"""Batches are bounded by the number of rows and by bytes."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.batches import MAX_BATCH_BYTES, batches, row_bytes
from strandline.store.late_samples import MAX_COUNTS
from strandline.store.rows import LateSamples
from support.manifest_rows import cut, row

pytestmark = pytest.mark.unit


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 10), st.integers(1, 100))
def test_batches_have_all_rows_in_order_and_keep_both_bounds(sizes: list[int], max_rows: int, max_bytes: int) -> None:
    found = list(batches(sizes, lambda size: size, max_rows=max_rows, max_bytes=max_bytes))
    assert [size for batch in found for size in batch] == sizes
    for batch in found:
        assert 1 <= len(batch) <= max_rows
        assert sum(batch) <= max_bytes or len(batch) == 1
    for before, after in pairwise(found):
        assert len(before) == max_rows or sum(before) + after[0] > max_bytes, (
            "the row would have fitted into the batch before"
        )


def test_rows_that_belong_together_stay_in_one_batch() -> None:
    parts = [[1, 1, 1], [1, 1], [1, 1, 1, 1, 1, 1], [1]]
    found = list(batches(parts, sum, max_rows=5, max_bytes=100, rows_of=len))
    assert found == [[[1, 1, 1], [1, 1]], [[1, 1, 1, 1, 1, 1]], [[1]]]


def test_a_row_with_the_most_that_a_shard_writes_is_a_small_part_of_a_batch() -> None:
    late = tuple(LateSamples(hour, 2**62) for hour in range(MAX_COUNTS))
    largest = row_bytes(replace(row(5, 0), late=late))
    assert row_bytes(cut(5, 0, 10)) <= row_bytes(row(5, 0)) < largest < MAX_BATCH_BYTES / 100
