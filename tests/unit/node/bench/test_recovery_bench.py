"""The loads that `strandline bench recovery` measures."""

import pytest

from strandline.node.bench.recovery_bench import RecoveryOptions

pytestmark = pytest.mark.unit


def test_series_and_lag_are_measured_at_three_places_to_show_how_time_grows() -> None:
    options = RecoveryOptions(series=1_000_000, lag=10_000)
    assert options.series_steps() == (100_000, 333_333, 1_000_000)
    assert options.lag_steps() == (2_500, 5_000, 10_000)


def test_small_amounts_are_measured_once() -> None:
    options = RecoveryOptions(series=3_000, lag=40)
    assert options.series_steps() == (3_000,)
    assert options.lag_steps() == (40,)


@pytest.mark.parametrize(
    ("series", "lag_series", "samples_a_record"),
    [(1_000_000, 100_000, 2_000), (5_500, 4_000, 2_000), (2_000, 2_000, 2_000), (700, 700, 700)],
)
def test_every_missed_record_is_equally_full(series: int, lag_series: int, samples_a_record: int) -> None:
    options = RecoveryOptions(series=series, lag=40)
    assert (options.lag_series, options.samples_a_record) == (lag_series, samples_a_record)
    assert lag_series % samples_a_record == 0
