"""Dividing a job's series into units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.recovery.replay.replay_input import SeriesBound
from strandline.recovery.replay.series_order import unit_order
from strandline.recovery.replay.units import MAX_UNITS, SampledSeries, positions_of_bounds, unit_bounds
from strandline.store.series_run import SeriesKeys

pytestmark = pytest.mark.unit

GROUPS = 4
ALL = frozenset(range(GROUPS))


def sampled(metric: np.ndarray, *, scale: float = 1.0, samples: float = 1.0, seed: int = 1) -> SampledSeries:
    rng = np.random.default_rng(seed)
    high, low = rng.integers(0, 2**64, (2, len(metric)), dtype=np.uint64)
    return SampledSeries(metric.astype(np.uint64), high, low, np.full(len(metric), samples), scale)


def bounds_of(
    sample: SampledSeries, unit_samples: int, *, kept: frozenset[int] = ALL, wants_keys: bool = False
) -> tuple[SeriesBound, ...]:
    return unit_bounds(sample, groups=GROUPS, kept=kept, wants_keys=wants_keys, unit_samples=unit_samples)


def sizes(sample: SampledSeries, bounds: tuple[SeriesBound, ...]) -> list[int]:
    """How many of the sampled series are in each unit."""
    rows = zip(
        (sample.metric % np.uint64(GROUPS)).tolist(),
        sample.metric.tolist(),
        sample.key_high.tolist(),
        sample.key_low.tolist(),
        strict=True,
    )
    units = [sum(bound <= SeriesBound(*row) for bound in bounds) for row in rows]
    return np.bincount(units, minlength=len(bounds) + 1).tolist()


def test_a_small_job_is_one_unit() -> None:
    assert bounds_of(sampled(np.arange(100), scale=10), 1000) == ()


def test_a_sample_is_weighted_by_what_it_was_taken_from() -> None:
    few = sampled(np.arange(100), scale=1)
    many = sampled(np.arange(100), scale=80)
    assert bounds_of(few, 1000) == ()
    assert len(bounds_of(many, 1000)) + 1 == 8


def test_units_have_about_the_same_number_of_samples() -> None:
    sample = sampled(np.arange(1000), scale=10)
    found = sizes(sample, bounds_of(sample, 1000))
    assert len(found) == 10
    assert max(found) <= 101


def test_one_metric_with_all_samples_is_divided_by_its_keys() -> None:
    sample = sampled(np.full(1000, 7), scale=10)
    found = sizes(sample, bounds_of(sample, 1000))
    assert len(found) == 10
    assert min(found) >= 99


def test_one_series_is_never_divided() -> None:
    metric, hashes = np.full(50, 7, dtype=np.uint64), np.full(50, 3, dtype=np.uint64)
    bounds = bounds_of(SampledSeries(metric, hashes, hashes, np.ones(50), 1000.0), 1000)
    assert bounds == (SeriesBound(3, 7, 3, 3),)


def test_samples_that_are_not_stored_do_not_count() -> None:
    sample = sampled(np.arange(1000), scale=10)
    assert len(bounds_of(sample, 1000, kept=frozenset({1}))) + 1 == 3


def test_series_whose_samples_are_not_stored_count_a_little_if_their_keys_are_wanted() -> None:
    sample = sampled(np.arange(1000), scale=64)
    assert bounds_of(sample, 1000, kept=frozenset()) == ()
    assert len(bounds_of(sample, 1000, kept=frozenset(), wants_keys=True)) + 1 == 4


def test_a_sample_without_a_series_gives_one_unit() -> None:
    assert bounds_of(sampled(np.arange(0)), 1) == ()


def test_there_are_never_more_units_than_a_result_can_number() -> None:
    assert len(bounds_of(sampled(np.arange(100), scale=1e9), 1)) < MAX_UNITS


def test_bounds_do_not_depend_on_the_order_of_the_sample() -> None:
    sample = sampled(np.arange(500) % 20, scale=10)
    shuffled = np.random.default_rng(2).permutation(500)
    other = SampledSeries(
        sample.metric[shuffled], sample.key_high[shuffled], sample.key_low[shuffled], sample.samples, sample.scale
    )
    assert bounds_of(sample, 1000) == bounds_of(other, 1000)


WORDS = st.integers(0, 3) | st.integers(2**64 - 3, 2**64 - 1)
KEYS = st.lists(st.tuples(WORDS, WORDS, WORDS), unique=True, max_size=30)


@given(KEYS, st.lists(st.builds(SeriesBound, st.integers(0, GROUPS), WORDS, WORDS, WORDS), unique=True, max_size=5))
def test_a_series_belongs_to_the_unit_whose_bounds_contain_it(
    keys: list[tuple[int, int, int]], drawn: list[SeriesBound]
) -> None:
    bounds = sorted(drawn)
    columns = np.array(keys, dtype=np.uint64).reshape(-1, 3).T.copy()
    group = (columns[0] % np.uint64(GROUPS)).astype(np.uint16)
    order = unit_order(SeriesKeys(*columns), group, bounds)
    positions = sorted(range(len(keys)), key=lambda number: (keys[number][0] % GROUPS, *keys[number]))
    assert order.number.tolist() == positions
    assert order.place[order.number].tolist() == list(range(len(keys)))
    covered = []
    for part in order.parts:
        for position in range(part.first, part.end):
            key = keys[positions[position]]
            here = SeriesBound(key[0] % GROUPS, *key)
            assert (part.group, part.unit) == (key[0] % GROUPS, sum(bound <= here for bound in bounds))
            covered.append(position)
    assert covered == list(range(len(keys)))
    by_unit = list(order.numbers_by_unit())
    assert len(by_unit) == len(bounds) + 1
    assert sorted(np.concatenate(by_unit).tolist()) == list(range(len(keys)))


def test_a_bound_that_no_series_has_lies_before_the_next_one() -> None:
    group, metric = np.array([0, 0, 1], dtype=np.uint64), np.array([4, 8, 1], dtype=np.uint64)
    hashes = np.zeros(3, dtype=np.uint64)
    positions = positions_of_bounds([SeriesBound(0, 5, 9, 9), SeriesBound(2, 0, 0, 0)], group, metric, hashes, hashes)
    assert positions == [1, 3]
