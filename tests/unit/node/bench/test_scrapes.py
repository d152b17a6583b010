"""Scrapes of the generated fleet."""

import numpy as np
import pytest

from strandline.node.bench.fleet import SERIES_A_RECORD, SHARED_BY_1K, labels_of
from strandline.node.bench.scrapes import INTERVAL_MS, Scrapes
from strandline.wire.columns import Columns
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.snappy import decompress
from support.remote_write import WriteRequest

pytestmark = pytest.mark.unit

BEGIN = 1_790_000_000_000
SERIES = 2_500
SCRAPES = 12


def columns_of(scrapes: Scrapes) -> Columns:
    columns = decode_batch(list(scrapes.next()), Limits())
    assert columns.faults == ()
    return columns


@pytest.fixture(scope="module")
def scraped() -> list[Columns]:
    scrapes = Scrapes(SERIES, BEGIN)
    return [columns_of(scrapes) for _ in range(SCRAPES)]


@pytest.fixture(scope="module")
def values(scraped: list[Columns]) -> np.ndarray:
    """By scrape and series."""
    return np.array([columns.value for columns in scraped])


def test_each_scrape_has_one_sample_of_every_series_of_the_fleet(scraped: list[Columns]) -> None:
    first = scraped[0]
    assert (
        len({(low, high) for low, high in zip(first.key_low.tolist(), first.key_high.tolist(), strict=True)}) == SERIES
    )
    for columns in scraped:
        assert columns.skipped.series == {}
        assert np.array_equal(np.diff(columns.first_sample), np.ones(SERIES, dtype=np.int64))
        assert np.array_equal(columns.key_low, first.key_low), "in the same order"


def test_records_have_as_many_series_as_the_fleets(scraped: list[Columns]) -> None:
    assert np.bincount(scraped[0].record).tolist() == [SERIES_A_RECORD, SERIES - SERIES_A_RECORD]


def test_the_official_implementation_reads_the_same_as_ours(scraped: list[Columns]) -> None:
    bodies = list(Scrapes(SERIES, BEGIN).next())
    requests = [WriteRequest.FromString(decompress(body, limit=1 << 25)) for body in bodies]
    series = [each for request in requests for each in request.timeseries]
    assert [[(label.name, label.value) for label in each.labels] for each in series[:3]] == [
        labels_of(n) for n in range(3)
    ]
    samples = [(each.samples[0].timestamp, each.samples[0].value) for each in series]
    assert samples == list(zip(scraped[0].time.tolist(), scraped[0].value.tolist(), strict=True))


def test_bodies_have_the_current_values_of_the_fleet_in_their_series() -> None:
    scrapes = Scrapes(SERIES, BEGIN)
    for _ in range(2):
        columns = columns_of(scrapes)
        assert np.array_equal(columns.value, scrapes._values)
        assert np.ptp(columns.time - scrapes._offsets) <= 4


def test_each_target_is_scraped_at_its_own_offset_in_every_interval(scraped: list[Columns]) -> None:
    targets = np.arange(SERIES) // SHARED_BY_1K
    base = scraped[0].time
    assert (base >= BEGIN).all()
    assert (base < BEGIN + INTERVAL_MS + 5).all()
    for number, columns in enumerate(scraped):
        passed = columns.time - base - number * INTERVAL_MS
        assert np.abs(passed[targets % 2 == 0]).max() <= 4
        assert not passed[targets % 2 == 1].any(), "these targets have no jitter"
    moments = {int(target): base[targets == target] for target in np.unique(targets)}
    assert np.ptp(moments[1]) == 0
    assert 0 < np.ptp(moments[0]) <= 4
    assert len({int(times[0]) // 5 for times in moments.values()}) > 1


def test_half_of_the_series_are_counters_which_never_fall(values: np.ndarray) -> None:
    steps = np.diff(values, axis=0)
    integral = (values == np.rint(values)).all(axis=0)
    changing = (steps != 0).any(axis=0)
    counters = integral & changing
    assert 0.4 < counters.mean() < 0.6
    assert (steps[:, counters] >= 0).all()


def test_gauges_have_two_decimals_and_some_series_never_change(values: np.ndarray) -> None:
    steps = np.diff(values, axis=0)
    gauges = (values != np.rint(values)).any(axis=0)
    assert 0.3 < gauges.mean() < 0.5
    assert np.array_equal(values[:, gauges], np.round(values[:, gauges], 2))
    assert (steps[:, gauges] < 0).any()
    constant = (steps == 0).all(axis=0)
    assert 0.05 < constant.mean() < 0.2


def test_each_run_has_the_same_bytes(scraped: list[Columns]) -> None:
    first, second = Scrapes(SERIES, BEGIN), Scrapes(SERIES, BEGIN)
    for _ in range(2):
        assert list(first.next()) == list(second.next())
    third = Scrapes(SERIES, BEGIN)
    assert np.array_equal(columns_of(third).value.view(np.uint64), scraped[0].value.view(np.uint64))


@pytest.mark.parametrize("series", [1, SERIES_A_RECORD, SERIES_A_RECORD + 1])
def test_any_number_of_series_is_possible(series: int) -> None:
    scrapes = Scrapes(series, BEGIN)
    for _ in range(2):
        assert len(columns_of(scrapes).time) == series


def test_times_of_coming_decades_fit_into_the_template() -> None:
    far = 2**42 - INTERVAL_MS - 5  # In the year 2109.
    assert columns_of(Scrapes(1, far)).time.min() >= far
