"""Functions over ranges of samples, and the lookback of instant selectors: from samples to a matrix of series by steps.

The grid has the moments at which windows end, so offsets and `@` are in it already. A window is left-open: of a range
of 5 m at 12:00 the sample at 11:55 is no part, and that at 12:00 is.
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
"""With the signature that `strandline.promql.kernels` has."""


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """How a function over ranges is evaluated. `parameters` counts the scalars that PromQL passes beside the range.
    With `takes_timestamps` the kernel has the moments of the query's steps as one parameter more.
    """

    kernel: Kernel
    variant: int = 0
    parameters: int = 0
    takes_timestamps: bool = False
    keeps_name: bool = False
    """Whether the metric's name stays in the result."""


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
"""By the names that PromQL has. `absent_over_time` is made of `present_over_time`."""


def evaluate_window(
    name: str,
    samples: Samples,
    grid: Grid,
    range_ms: int,
    parameters: tuple[F64s, ...] = (),
    *,
    timestamps: I64s | None = None,
) -> F64Matrix:
    """A function over the windows of all series. The samples are `without_stale`; each parameter has a number for each
    step. `timestamps` are those of the query's steps, where an offset or `@` has moved the grid away from them.
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
        raise ValueError(f"{name} takes {function.parameters} parameters beside its range, not {len(parameters)}")
    if not out.size:
        return
    rows = list(parameters)
    if function.takes_timestamps:
        rows.append((grid.timestamps() if timestamps is None else timestamps).astype(np.float64))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), grid.count)
    function.kernel(*_columns(samples), *_bounds(grid, range_ms), for_reading(table), function.variant, out)


def latest(samples: Samples, grid: Grid, lookback_ms: int) -> F64Matrix:
    """What an instant selector gives: the latest sample that is not older than the lookback. A stale marker ends a
    series.
    """
    return _lookback(samples, grid, lookback_ms, lookback.VALUE)


def latest_time(samples: Samples, grid: Grid, lookback_ms: int) -> F64Matrix:
    """The times of those samples in seconds: `timestamp()` of a selector."""
    return _lookback(samples, grid, lookback_ms, lookback.TIME)


def without_stale(samples: Samples) -> Samples:
    """The samples that a range has: all but stale markers. The same object if there is none."""
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
    """The values with `NAN_BITS` for every NaN but the stale marker. The same array if nothing changes."""
    if not cells.count_odd_nans(for_reading(value)):
        return value
    canonical = value.copy()
    cells.make_canonical(canonical)
    return canonical


def samples_of(vector: Vector, grid: Grid) -> Samples:
    """The cells of a matrix as samples at the moments of its grid: what a subquery's function works on."""
    values = for_reading(vector.values)
    first_sample = np.empty(len(values) + 1, dtype=np.int64)
    time = np.empty(values.size, dtype=np.int64)
    value = np.empty(values.size, dtype=np.float64)
    found = cells.gather_cells(values, grid.start, grid.step, first_sample, time, value)
    return Samples(vector.keys, first_sample, time[:found], value[:found])


def load_kernels() -> None:
    """Have the kernels at hand: they are compiled or read from a cache when first called, which may take seconds."""
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
