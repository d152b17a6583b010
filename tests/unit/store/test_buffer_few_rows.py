"""Rows of a few series, found by the bounds of chunks of rows."""

import numpy as np
import pytest

from strandline.arrays import U32s
from strandline.store.buffer.kernels.rows import BLOCK
from strandline.store.buffer.open_rows import ROWS_PER_CHUNK, IncomingRows, OpenRows, Rows
from strandline.store.buffer.value_search import positions_of_any

SERIES = 3 * ROWS_PER_CHUNK // 2
CAPACITY = 5 * ROWS_PER_CHUNK + 100
ORDERS = {
    "scrape after scrape": np.arange(CAPACITY) % SERIES,
    "by chance": np.random.default_rng(3).integers(0, SERIES, CAPACITY),
    "one series": np.zeros(CAPACITY),
}


def feed(rows: OpenRows, series: U32s, first: int, behind: int) -> None:
    count = behind - first
    incoming = IncomingRows.of(
        series[first:behind],
        np.arange(count + 1, dtype=np.int64),
        np.arange(first, behind, dtype=np.int64),
        np.arange(first, behind, dtype=np.float64),
        SERIES,
    )
    assert rows.fill(incoming, 0, 0) == (count, 0)


def places(rows: Rows, wanted: list[int]) -> list[int]:
    few = rows.of_series(np.array(wanted, dtype=np.uint32))
    assert few.time.tolist() == few.value.tolist()
    assert few.series.tolist() == rows.series[few.time].tolist()
    return few.time.tolist()


@pytest.mark.parametrize("order", ORDERS)
def test_rows_of_few_series_are_found_while_rows_are_added(order: str) -> None:
    series, rows = ORDERS[order].astype(np.uint32), OpenRows(CAPACITY)
    snapshots, filled = [rows.snapshot()], 0
    for behind in (10, ROWS_PER_CHUNK, ROWS_PER_CHUNK + 1, 3 * ROWS_PER_CHUNK + 7, CAPACITY):
        feed(rows, series, filled, behind)
        filled = behind
        snapshots.append(rows.snapshot())
        # Earlier snapshots find them too, whatever was cached for later ones.
        for snapshot in snapshots:
            for wanted in ([0], [SERIES - 1], [5, ROWS_PER_CHUNK + 5, SERIES - 1], [SERIES]):
                assert places(snapshot, wanted) == np.flatnonzero(np.isin(series[: len(snapshot)], wanted)).tolist()


def test_rows_that_only_the_writer_has_read_are_reused() -> None:
    rows = OpenRows(2 * ROWS_PER_CHUNK)
    first, then = (np.full(2 * ROWS_PER_CHUNK, number, dtype=np.uint32) for number in (1, 2))
    feed(rows, first, 0, len(first))
    assert places(rows.rows(), [1]) == list(range(len(first)))
    assert rows.reset() is rows
    feed(rows, then, 0, len(then))
    assert places(rows.snapshot(), [1]) == []
    assert places(rows.snapshot(), [2]) == list(range(len(then)))


@pytest.mark.parametrize("length", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3])
def test_a_few_values_are_found_anywhere_in_a_column(length: int) -> None:
    column = np.random.default_rng(length).integers(0, 1 << 63, length).astype(np.uint64)
    assert positions_of_any(column, column[:0]).tolist() == []
    for wanted in ([0], [length - 1], [0, length // 2, length - 1], range(length)):
        values = column[[place for place in wanted if 0 <= place < length]]
        expected = np.flatnonzero(np.isin(column, values)).tolist()
        assert positions_of_any(column, np.append(values, np.uint64(1 << 63))).tolist() == expected
