"""Series without a key are counted once each, with all their samples and the time range of those."""

import numpy as np
import pytest

from strandline.arrays import U32s, U64s
from strandline.index.key_table import MISSING
from strandline.recovery.keyless_series import KeylessSeriesCounter, SegmentSeries, is_salvaged, salvage_attempt

pytestmark = pytest.mark.unit

HOUR = 3_600_000


def series(*rows: tuple[int, int, int, int]) -> SegmentSeries:
    """Series by number: the samples of each, and the hours of the first and the last."""
    number, samples, least, greatest = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return SegmentSeries(
        number.astype(np.uint64), number.astype(np.uint64) + np.uint64(7), samples, least * HOUR, greatest * HOUR
    )


def find_even(low: U64s, high: U64s) -> U32s:
    """An index that has the series with even numbers."""
    assert np.array_equal(high, low + np.uint64(7))
    return np.where(low % np.uint64(2) == 0, np.uint32(1), np.uint32(MISSING))


def test_a_series_counts_once_and_its_samples_in_every_segment() -> None:
    unnamed = KeylessSeriesCounter(find_even)
    unnamed.take(series((1, 10, 5, 6), (2, 100, 0, 9), (3, 20, 5, 7)))
    unnamed.take(series((3, 5, 8, 8), (4, 100, 0, 9)))
    unnamed.take(series((5, 1, 4, 4), (1, 2, 5, 5)))
    counted = unnamed.counted()
    assert (counted.series, counted.samples) == (3, 38)
    assert (counted.least_time, counted.greatest_time) == (4 * HOUR, 8 * HOUR)
    assert str(counted) == "3 series with 38 samples between 1970-01-01T04:00:00Z and 1970-01-01T08:00:00Z"


def test_series_that_have_keys_are_not_counted() -> None:
    unnamed = KeylessSeriesCounter(find_even)
    unnamed.take(series((2, 10, 5, 6), (4, 10, 5, 6)))
    assert str(unnamed.counted()) == "no series"
    assert unnamed.counted().least_time is None


def test_what_was_salvaged_of_a_bucket_is_known_by_its_attempt() -> None:
    attempt = salvage_attempt("a1b2.3", 1_001)
    assert is_salvaged(attempt, 1_001)
    assert not is_salvaged(attempt, 1)
    assert not is_salvaged("a1b2.3.4", 1_001)
