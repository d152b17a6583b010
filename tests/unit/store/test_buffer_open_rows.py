"""Snapshots of rows while the writer continues."""

import numpy as np
import pytest

from strandline.store.buffer.open_rows import IncomingRows, OpenRows

pytestmark = pytest.mark.unit


def one_row(series: int, time: int) -> IncomingRows:
    return IncomingRows.of(
        np.array([series], dtype=np.uint32),
        np.array([0, 1], dtype=np.int64),
        np.array([time], dtype=np.int64),
        np.array([1.0]),
        series + 1,
    )


def test_rows_of_a_snapshot_are_not_reused_even_if_it_was_empty() -> None:
    """The writer may fill them between reading their number and reading the rows."""
    rows = OpenRows(4)
    looked = rows.snapshot()
    rows.fill(one_row(1, 10), 0, 0)
    kept = OpenRows.rows(rows)
    assert len(looked.time) == 0
    following = rows.reset()
    following.fill(one_row(2, 20), 0, 0)
    assert kept.time.tolist() == [10]
