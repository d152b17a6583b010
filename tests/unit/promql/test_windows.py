import math
from dataclasses import dataclass

import numpy as np
import pytest

from strandline.arrays import F64s
from strandline.index.key_bytes import KeyBytes
from strandline.promql.functions import FUNCTIONS
from strandline.promql.value_types import ValueType
from strandline.promql.values import (
    NAN_BITS,
    NO_SAMPLE,
    NO_SAMPLE_BITS,
    STALE_BITS,
    F64Matrix,
    Grid,
    Samples,
    Vector,
)
from strandline.promql.windows import (
    WINDOW_FUNCTIONS,
    canonical_nans,
    evaluate_window,
    evaluate_window_into,
    latest,
    latest_time,
    load_kernels,
    samples_of,
    without_stale,
)
from tests.support import promql_reference as reference

pytestmark = pytest.mark.unit

NAN = float(np.int64(NAN_BITS).view(np.float64))
INF = math.inf
STALE = np.int64(STALE_BITS).view(np.float64)
MINUTE = 60_000


def keys_of(count: int) -> KeyBytes:
    """Windows do not read keys."""
    return KeyBytes(np.zeros(count + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8))


def samples(*series: list[tuple[int, float]]) -> Samples:
    first_sample = np.cumsum([0, *map(len, series)], dtype=np.int64)
    time = np.array([time for points in series for time, _ in points], dtype=np.int64)
    # Through bits, because a staleness marker is a signalling NaN.
    bits = [np.float64(value).view(np.int64) for points in series for _, value in points]
    return Samples(keys_of(len(series)), first_sample, time, np.array(bits, dtype=np.int64).view(np.float64))


def every_15_s(*values: float) -> list[tuple[int, float]]:
    """From 15 s on."""
    return [(15_000 * (position + 1), value) for position, value in enumerate(values)]


def is_missing(values: F64Matrix) -> list[bool]:
    return [bool(missing) for missing in (values.view(np.int64) == NO_SAMPLE_BITS).ravel()]


def one_window(name: str, series: list[tuple[int, float]], end: int, length: int, *parameters: float) -> float | None:
    grid = Grid(end, 1, 1)
    found = evaluate_window(name, samples(series), grid, length, tuple(np.array([number]) for number in parameters))
    return None if is_missing(found)[0] else float(found[0, 0])


@dataclass(frozen=True, slots=True)
class World:
    series: list[list[tuple[int, float]]]
    grid: Grid
    length: int
    parameter: F64s


NUMBERS = [
    lambda random: float(random.normal(20, 5)),
    lambda random: float(random.integers(-3, 4)),
    lambda random: float(random.choice([NAN, INF, -INF, 0.0, -0.0, 1.0, 2.5])),
    lambda random: float(random.choice([NAN, 1.5, 2.0])),
    lambda random: float(random.uniform(-1, 1) * 10.0 ** random.integers(-20, 20)),
]


def random_world(seed: int) -> World:
    """Series with gaps, resets and special values, and windows that overlap, are adjacent or have gaps."""
    random = np.random.default_rng(seed)
    series = []
    for _ in range(6):
        count = int(random.choice([0, 1, 2, 40, 40]))
        times = np.cumsum(random.choice([500, 1_000, 15_000, 15_000, 15_000, 90_000], count))
        number = NUMBERS[random.integers(len(NUMBERS))]
        values = [number(random) for _ in range(count)]
        if random.random() < 0.3:
            values = list(np.cumsum(random.uniform(0, 10, count)) % 50)
        series.append([(int(time), float(value)) for time, value in zip(times, values, strict=True)])
    step = int(random.choice([0, 1_000, 15_000, 60_000, 300_000]))
    grid = Grid(int(random.integers(-60_000, 300_000)), step, int(random.choice([1, 13, 25])))
    length = int(random.choice([1, 15_000, 60_000, 61_234, 300_000, 3_600_000]))
    return World(series, grid, length, random.choice([0.0, 0.5, 0.9, 1.0, 0.25], grid.count))


def close(found: float, expected: float) -> bool:
    if math.isnan(expected) or math.isinf(expected):
        return math.isnan(found) if math.isnan(expected) else found == expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


SEEDS = range(60)


@pytest.mark.parametrize("name", WINDOW_FUNCTIONS)
def test_windows_agree_with_the_reference(name: str) -> None:
    compared = 0
    for seed in SEEDS:
        world = random_world(seed)
        parameters = (world.parameter,) if WINDOW_FUNCTIONS[name].parameters else ()
        found = evaluate_window(name, samples(*world.series), world.grid, world.length, parameters)
        for at, end in enumerate(world.grid.timestamps()):
            for position, points in enumerate(world.series):
                window = reference.window_of(points, int(end), world.length)
                expected = reference.evaluate(name, window, int(end), world.length, float(world.parameter[at]))
                missing = found[position, at].view(np.int64) == NO_SAMPLE_BITS
                assert missing == (expected is None), (seed, position, at, window)
                if expected is not None:
                    assert close(float(found[position, at]), expected), (seed, position, at, window, expected)
                    compared += 1
    assert compared > 500


def test_the_table_contains_every_function_over_a_range() -> None:
    over_ranges = {
        function.name: len(function.parameters) - 1
        for function in FUNCTIONS.values()
        if ValueType.MATRIX in function.parameters and not function.is_experimental
    }
    assert over_ranges.pop("absent_over_time") == 0
    assert {name: function.parameters for name, function in WINDOW_FUNCTIONS.items()} == over_ranges


def test_a_window_is_left_open() -> None:
    series = [(0, 1.0), (MINUTE, 2.0), (2 * MINUTE, 4.0)]
    assert one_window("sum_over_time", series, 2 * MINUTE, 2 * MINUTE) == 6.0
    assert one_window("sum_over_time", series, 2 * MINUTE, 2 * MINUTE + 1) == 7.0
    assert one_window("sum_over_time", series, 2 * MINUTE - 1, MINUTE) == 2.0
    assert one_window("sum_over_time", series, 4 * MINUTE, 2 * MINUTE) is None
    assert one_window("idelta", series, 2 * MINUTE, MINUTE) is None
    assert one_window("idelta", series, 2 * MINUTE, MINUTE + 1) == 2.0


def test_a_large_sample_does_not_affect_later_windows() -> None:
    series = samples(every_15_s(1e16, 1.0, 1.0, 1.0, 1.0))
    grid = Grid(45_000, 15_000, 3)
    assert evaluate_window("sum_over_time", series, grid, 45_000).tolist() == [[1e16 + 2, 3.0, 3.0]]
    assert evaluate_window("avg_over_time", series, grid, 45_000)[0, 1:].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        # 15 s to 60 s are covered of 0 s to 60 s: 15 s before the first, 15 s apart, so 4/3 of a rise of 30.
        ("increase", (100.0, 110.0, 120.0, 130.0), 40.0),
        ("rate", (100.0, 110.0, 120.0, 130.0), 40.0 / 60),
        ("delta", (130.0, 120.0, 110.0, 100.0), -40.0),
        # The counter was zero 4.5 s before the first sample, not 15 s: (45 + 4.5) / 45 of a rise of 30.
        ("increase", (3.0, 13.0, 23.0, 33.0), 33.0),
        # After a reset it counts from zero: 10 + 5 + 10.
        ("increase", (100.0, 110.0, 5.0, 15.0), 25.0 * 4 / 3),
        ("irate", (100.0, 110.0, 120.0, 6.0), 6.0 / 15),
        ("idelta", (100.0, 110.0, 120.0, 6.0), -114.0),
        ("resets", (3.0, 2.0, 2.0, 1.0), 2.0),
        ("changes", (3.0, NAN, NAN, 1.0), 2.0),
        ("deriv", (1.0, 4.0, 7.0, 10.0), 0.2),
        ("deriv", (INF, INF, INF, INF), NAN),
        ("deriv", (3.0, 3.0, 3.0, 3.0), 0.0),
        ("sum_over_time", (1.0, 1e100, 1.0, -1e100), 2.0),
        ("sum_over_time", (1.0, INF, 1.0, 1.0), INF),
        ("avg_over_time", (1.0, 1e100, 1.0, -1e100), 0.5),
        # The sum overflows.
        ("avg_over_time", (1.5e308, 1.5e308, 1.5e308, 1.5e308), 1.5e308),
        ("avg_over_time", (1.5e308, 1.5e308, -INF, 1.0), -INF),
        ("max_over_time", (NAN, 1.0, 2.0, NAN), 2.0),
        ("min_over_time", (NAN, NAN, NAN, NAN), NAN),
        ("stdvar_over_time", (2.0, 4.0, 4.0, 6.0), 2.0),
        ("stddev_over_time", (1e9 + 1, 1e9 + 3, 1e9 + 1, 1e9 + 3), 1.0),
    ],
)
def test_hand_computed_windows(name: str, values: tuple[float, ...], expected: float) -> None:
    found = one_window(name, every_15_s(*values), MINUTE, MINUTE)
    assert found == pytest.approx(expected, rel=1e-14, nan_ok=True)


def test_a_series_that_begins_or_ends_in_the_window_is_extended_by_half_an_interval() -> None:
    series = [(100_000, 50.0), (110_000, 60.0), (120_000, 70.0)]
    assert one_window("delta", series, 300_000, 300_000) == pytest.approx(20.0 * 30 / 20, rel=1e-14)
    # From 1.1 intervals on.
    assert one_window("delta", series, 131_000, 42_000) == pytest.approx(20.0 * 30 / 20, rel=1e-14)
    assert one_window("delta", series, 130_999, 41_998) == pytest.approx(20.0 * 41.998 / 20, rel=1e-14)


@pytest.mark.parametrize(
    ("quantile", "values", "expected"),
    [
        (0.5, (4.0, 1.0, 3.0, 2.0), 2.5),
        (0.0, (4.0, 1.0, NAN, 2.0), NAN),
        (0.5, (4.0, 1.0, NAN, 2.0), 1.5),
        (1.0, (4.0, 1.0, NAN, 2.0), 4.0),
        (-0.1, (1.0,), -INF),
        (1.1, (1.0,), INF),
        (NAN, (1.0,), NAN),
        # A weight of 0 is multiplied with infinity, too.
        (0.0, (INF, INF), NAN),
    ],
)
def test_nan_sorts_first_in_a_quantile(quantile: float, values: tuple[float, ...], expected: float) -> None:
    found = one_window("quantile_over_time", every_15_s(*values), MINUTE, MINUTE, quantile)
    assert found == pytest.approx(expected, nan_ok=True)


def test_predict_linear_starts_at_the_evaluation_timestamp_even_with_an_offset() -> None:
    line = samples(every_15_s(1.0, 2.0, 3.0, 4.0))
    ends = Grid(60_000, 15_000, 2)
    hour = (np.full(2, 3_600.0),)
    here = evaluate_window("predict_linear", line, ends, MINUTE, hour)
    assert here[0] == pytest.approx([244.0, 245.0])
    moved = evaluate_window("predict_linear", line, ends, MINUTE, hour, timestamps=ends.timestamps() + 30_000)
    assert moved[0] == pytest.approx([246.0, 247.0])


def test_a_parameter_may_change_from_step_to_step() -> None:
    series = samples(every_15_s(1.0, 2.0, 3.0, 4.0))
    found = evaluate_window("quantile_over_time", series, Grid(MINUTE, 0, 3), MINUTE, (np.array([0.0, 0.5, 1.0]),))
    assert list(found[0]) == [1.0, 2.5, 4.0]


def test_a_function_with_the_wrong_number_of_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="quantile_over_time takes 1 parameters besides its range, not 0"):
        evaluate_window("quantile_over_time", samples([]), Grid(0, 1, 1), MINUTE)


def test_a_grid_without_steps_has_no_columns() -> None:
    series = samples(every_15_s(1.0, 2.0))
    assert evaluate_window("stddev_over_time", series, Grid(0, MINUTE, 0), MINUTE).shape == (1, 0)
    assert latest(series, Grid(0, MINUTE, 0), MINUTE).shape == (1, 0)


def test_a_block_of_series_writes_its_own_rows() -> None:
    series = samples(every_15_s(1.0), every_15_s(2.0, 3.0), [], every_15_s(5.0))
    grid = Grid(MINUTE, MINUTE, 2)
    whole = evaluate_window("sum_over_time", series, grid, MINUTE)
    out = np.full((4, 2), 7.0)
    block = Samples(keys_of(2), series.first_sample[1:4], series.time, series.value)
    evaluate_window_into("sum_over_time", block, grid, MINUTE, out=out[1:3])
    assert out[[0, 3]].tolist() == [[7.0, 7.0], [7.0, 7.0]]
    assert out[1:3].tobytes() == whole[1:3].tobytes()


def test_columns_may_be_of_any_layout_and_kernels_are_compiled_once() -> None:
    load_kernels()
    unaligned = b"\0" + np.arange(4, dtype=np.int64).tobytes()
    time = np.frombuffer(unaligned, dtype=np.int64, count=4, offset=1)
    series = Samples(keys_of(1), np.array([0, 4]), time, np.arange(8.0)[::2])
    for name, function in WINDOW_FUNCTIONS.items():
        evaluate_window(name, series, Grid(3, 1, 2), 2, (np.full(2, 0.5),) * function.parameters)
        assert len(function.kernel.signatures) == 1, name
    assert evaluate_window("sum_over_time", series, Grid(3, 1, 1), 2)[0, 0] == 10.0
    assert latest(series, Grid(3, 1, 1), 2)[0, 0] == 6.0


def test_lookback_finds_the_latest_sample_and_is_left_open() -> None:
    series = samples([(0, 1.0), (MINUTE, NAN)], [])
    grid = Grid(-1, 1, 2)
    assert is_missing(latest(series, grid, 5 * MINUTE)) == [True, False, True, True]
    grid = Grid(6 * MINUTE - 1, 1, 2)
    assert is_missing(latest(series, grid, 5 * MINUTE)) == [False, True, True, True]
    assert latest(series, grid, 5 * MINUTE).view(np.int64)[0, 0] == NAN_BITS
    assert latest_time(series, grid, 5 * MINUTE)[0, 0] == 60.0


def test_a_stale_marker_ends_a_series_until_its_next_sample() -> None:
    series = samples([(0, 1.0), (10, STALE), (20, 2.0)])
    grid = Grid(9, 1, 12)
    found = latest(series, grid, 5 * MINUTE)
    assert is_missing(found) == [False, *[True] * 10, False]
    assert (found[0, 0], found[0, -1]) == (1.0, 2.0)
    assert is_missing(latest_time(series, grid, 5 * MINUTE)) == is_missing(found)


def test_stale_markers_are_no_part_of_ranges_but_nan_is() -> None:
    series = samples([(0, STALE), (1, 1.0)], [(0, STALE)], [(0, NAN), (5, STALE), (6, 3.0)])
    kept = without_stale(series)
    assert kept.first_sample.tolist() == [0, 1, 1, 3]
    assert kept.time.tolist() == [1, 0, 6]
    assert kept.value.view(np.int64).tolist() == [np.float64(1).view(np.int64), NAN_BITS, np.float64(3).view(np.int64)]
    assert without_stale(kept) is kept


def test_nans_become_canonical_but_stale_markers_stay() -> None:
    bits = [NO_SAMPLE_BITS, STALE_BITS, NAN_BITS, -1, int(np.float64(INF).view(np.int64)), 0x7FF0_0000_0000_0001]
    value = np.array(bits, dtype=np.int64).view(np.float64)
    canonical = canonical_nans(value)
    assert canonical.view(np.int64).tolist() == [NAN_BITS, STALE_BITS, NAN_BITS, NAN_BITS, bits[4], NAN_BITS]
    assert value.view(np.int64).tolist() == bits
    assert canonical_nans(canonical) is canonical


def test_cells_of_a_matrix_become_samples_at_its_steps() -> None:
    values = np.array([[1.0, NO_SAMPLE, NAN], [NO_SAMPLE] * 3, [NO_SAMPLE, 2.0, 3.0]])
    found = samples_of(Vector(keys_of(3), values), Grid(100, 10, 3))
    assert found.first_sample.tolist() == [0, 2, 2, 4]
    assert found.time.tolist() == [100, 120, 110, 120]
    assert found.value.tobytes() == np.array([1.0, NAN, 2.0, 3.0]).tobytes()
    assert evaluate_window("sum_over_time", found, Grid(120, 1, 1), 20)[2, 0] == 5.0
