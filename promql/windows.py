"""Functions over range vectors, and instant selectors with the lookback delta: from samples to a matrix of series by
steps.

The grid contains the timestamps at which windows end, after `offset` and `@`. A window is left-open: a range of 5m at
12:00 excludes the sample at 11:55 and includes the one at 12:00.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from strandline.arrays import F64s, I64s
from strandline.index.key_bytes import KeyBytes
from strandline.promql.kernels import (
    cells,
    deviations,
    extrapolated,
    extremes,
    instant,
    lookback,
    quantiles,
    regression,
    selected,
    sums,
    transitions,
)
from strandline.promql.values import NO_SAMPLE_BITS, STALE_BITS, F64Matrix, Grid, Samples, Vector, for_reading

Kernel = Callable[..., None]
"""A window kernel; `strandline.promql.kernels` describes the signature."""


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """How a function over a range vector is evaluated. `parameters` is the number of its scalar parameters. With
    `takes_timestamps`, the kernel gets the evaluation timestamps as an additional parameter.
    """

    kernel: Kernel
    variant: int = 0
    parameters: int = 0
    takes_timestamps: bool = False
    keeps_name: bool = False
    """Whether the result keeps the metric name."""


WINDOW_FUNCTIONS: Final[Mapping[str, WindowFunction]] = MappingProxyType(
    {
        "rate": WindowFunction(extrapolated.extrapolated, extrapolated.RATE),
        "increase": WindowFunction(extrapolated.extrapolated, extrapolated.INCREASE),
        "delta": WindowFunction(extrapolated.extrapolated, extrapolated.DELTA),
        "irate": WindowFunction(instant.last_difference, instant.IRATE),
        "idelta": WindowFunction(instant.last_difference, instant.IDELTA),
        "deriv": WindowFunction(regression.regression, regression.DERIV),
        "predict_linear": WindowFunction(
            regression.regression, regression.PREDICT_LINEAR, parameters=1, takes_timestamps=True
        ),
        "resets": WindowFunction(transitions.transitions, transitions.RESETS),
        "changes": WindowFunction(transitions.transitions, transitions.CHANGES),
        "sum_over_time": WindowFunction(sums.sums, sums.SUM),
        "avg_over_time": WindowFunction(sums.sums, sums.AVG),
        "min_over_time": WindowFunction(extremes.extremes, extremes.MIN),
        "max_over_time": WindowFunction(extremes.extremes, extremes.MAX),
        "count_over_time": WindowFunction(selected.selected, selected.COUNT),
        "present_over_time": WindowFunction(selected.selected, selected.PRESENT),
        "first_over_time": WindowFunction(selected.selected, selected.FIRST, keeps_name=True),
        "last_over_time": WindowFunction(selected.selected, selected.LAST, keeps_name=True),
        "stddev_over_time": WindowFunction(deviations.deviations, deviations.STDDEV),
        "stdvar_over_time": WindowFunction(deviations.deviations, deviations.STDVAR),
        "quantile_over_time": WindowFunction(quantiles.quantiles, parameters=1),
    }
)
"""By PromQL name. `absent_over_time` is evaluated with `present_over_time`."""


def evaluate_window(
    name: str,
    samples: Samples,
    grid: Grid,
    range_ms: int,
    parameters: tuple[F64s, ...] = (),
    *,
    timestamps: I64s | None = None,
) -> F64Matrix:
    """Evaluate a function over the windows of all series. The samples are `without_stale`. Each parameter has one
    number for each step. `timestamps` are the evaluation timestamps, if they differ from the grid due to `offset` or
    `@`.
    """
    out = np.empty((len(samples.first_sample) - 1, grid.count), dtype=np.float64)
    evaluate_window_into(name, samples, grid, range_ms, parameters, timestamps=timestamps, out=out)
    return out


def evaluate_window_into(
    name: str,
    samples: Samples,
    grid: Grid,
    range_ms: int,
    parameters: tuple[F64s, ...] = (),
    *,
    timestamps: I64s | None = None,
    out: F64Matrix,
) -> None:
    """The same for a block of series: `samples.first_sample` may be a slice, and `out` the rows of a larger matrix."""
    function = WINDOW_FUNCTIONS[name]
    if len(parameters) != function.parameters:
        raise ValueError(f"{name} takes {function.parameters} parameters besides its range, not {len(parameters)}")
    if not out.size:
        return
    rows = list(parameters)
    if function.takes_timestamps:
        rows.append((grid.timestamps() if timestamps is None else timestamps).astype(np.float64))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), grid.count)
    function.kernel(*_columns(samples), *_bounds(grid, range_ms), for_reading(table), function.variant, out)


def latest(samples: Samples, grid: Grid, lookback_ms: int) -> F64Matrix:
    """The value of an instant selector: the latest sample in the lookback delta, unless it is a staleness marker."""
    return _lookback(samples, grid, lookback_ms, lookback.VALUE)


def latest_time(samples: Samples, grid: Grid, lookback_ms: int) -> F64Matrix:
    """The timestamps of these samples in seconds: `timestamp()` of a selector."""
    return _lookback(samples, grid, lookback_ms, lookback.TIME)


def without_stale(samples: Samples) -> Samples:
    """The samples without staleness markers, as in a range vector. The same object if there are none."""
    stale = cells.count_stale(for_reading(samples.value))
    if not stale:
        return samples
    kept = len(samples.value) - stale
    first_sample = np.empty(len(samples.first_sample), dtype=np.int64)
    time = np.empty(kept, dtype=np.int64)
    value = np.empty(kept, dtype=np.float64)
    cells.drop_stale(*_columns(samples), first_sample, time, value)
    return Samples(samples.keys, first_sample, time, value)


def canonical_nans(value: F64s) -> F64s:
    """The values with `NAN_BITS` for every NaN except the staleness marker. The same array if nothing changes."""
    if not cells.count_odd_nans(for_reading(value)):
        return value
    canonical = value.copy()
    cells.make_canonical(canonical)
    return canonical


def samples_of(vector: Vector, grid: Grid) -> Samples:
    """The cells of a matrix as samples at the timestamps of its grid: the input of a function over a subquery."""
    values = for_reading(vector.values)
    first_sample = np.empty(len(values) + 1, dtype=np.int64)
    time = np.empty(values.size, dtype=np.int64)
    value = np.empty(values.size, dtype=np.float64)
    found = cells.cells_to_samples(values, grid.start, grid.step, first_sample, time, value)
    return Samples(vector.keys, first_sample, time[:found], value[:found])


def load_kernels() -> None:
    """Call each kernel once: numba compiles it, or loads it from its cache, at the first call. May take seconds."""
    keys = KeyBytes(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    stale = np.array([STALE_BITS, NO_SAMPLE_BITS], dtype=np.int64).view(np.float64)
    samples = Samples(keys, np.array([0, 2]), np.array([1, 2]), canonical_nans(stale))
    grid = Grid(2, 1, 1)
    latest(samples, grid, 2)
    kept = without_stale(samples)
    for name, function in WINDOW_FUNCTIONS.items():
        values = evaluate_window(name, kept, grid, 2, (np.ones(1),) * function.parameters)
    samples_of(Vector(keys, values), grid)


def _lookback(samples: Samples, grid: Grid, lookback_ms: int, variant: int) -> F64Matrix:
    out = np.empty((len(samples.first_sample) - 1, grid.count), dtype=np.float64)
    parameters = for_reading(np.empty((0, grid.count)))
    lookback.latest(*_columns(samples), *_bounds(grid, lookback_ms), parameters, variant, out)
    return out


def _bounds(grid: Grid, length: int) -> tuple[int, int, int, int]:
    return grid.start, grid.step, grid.count, length


def _columns(samples: Samples) -> tuple[Any, Any, Any]:
    return for_reading(samples.first_sample), for_reading(samples.time), for_reading(samples.value)
