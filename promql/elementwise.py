"""Functions of single values, by their PromQL names.

All of them drop the metric name; the caller changes the labels. NaN in a result may have any bits except those of
"no sample".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from strandline.arrays import F64s
from strandline.promql.arithmetic import missing
from strandline.promql.kernels import calendar
from strandline.promql.kernels.clamping import clamp_rows
from strandline.promql.values import NO_SAMPLE, F64Matrix, Grid, for_reading

# Go computes log10 from the natural logarithm, so log10(1e15) is below 15, which `floor` makes visible.
_LOG10_OF_E: Final = 0.43429448190325182765112891891660508229439700580367
_LOG2_OF_E: Final = 1.44269504088896340735992468100189214

Compute = Callable[[F64Matrix, tuple[F64s, ...], Grid], F64Matrix]


@dataclass(frozen=True, slots=True)
class ElementwiseFunction:
    """How a function is computed from values, parameters for each step, and the grid. `optional` are the defaults of
    the last parameters.
    """

    compute: Compute
    optional: tuple[float, ...] = ()
    is_of_time: bool = False
    """Without an argument it is applied to `vector(time())`."""


def evaluate_elementwise(name: str, values: F64Matrix, parameters: tuple[F64s, ...], grid: Grid) -> F64Matrix:
    """Evaluate a function by its name, with its scalar parameters in the order of PromQL."""
    function = ELEMENTWISE[name]
    given = parameters + tuple(np.full(grid.count, value) for value in function.optional[len(parameters) :])
    return function.compute(values, given, grid)


def _of_value(function: Callable[[F64Matrix], F64Matrix]) -> ElementwiseFunction:
    def compute(values: F64Matrix, _parameters: tuple[F64s, ...], _grid: Grid) -> F64Matrix:
        with np.errstate(all="ignore"):
            return _with_gaps_of(values, function(values))

    return ElementwiseFunction(compute)


def _with_gaps_of(values: F64Matrix, out: F64Matrix) -> F64Matrix:
    out[missing(values)] = NO_SAMPLE
    return out


def _sign(values: F64Matrix) -> F64Matrix:
    """Zeros and NaN are returned unchanged."""
    return np.where(values < 0, -1.0, np.where(values > 0, 1.0, values))


def _log2(values: F64Matrix) -> F64Matrix:
    fraction, exponent = np.frexp(values)
    logarithm: F64Matrix = np.log(fraction) * _LOG2_OF_E + exponent
    # Powers of two are exact.
    return np.where(fraction == 0.5, exponent - 1.0, logarithm)


def _log10(values: F64Matrix) -> F64Matrix:
    logarithm: F64Matrix = np.log(values) * _LOG10_OF_E
    return logarithm


def _degrees(values: F64Matrix) -> F64Matrix:
    return values * 180 / np.pi


def _radians(values: F64Matrix) -> F64Matrix:
    return values * np.pi / 180


def _round(values: F64Matrix, parameters: tuple[F64s, ...], _grid: Grid) -> F64Matrix:
    """To the nearest multiple; halves are rounded up."""
    with np.errstate(all="ignore"):
        inverse = 1.0 / parameters[0]
        return _with_gaps_of(values, np.floor(values * inverse + 0.5) / inverse)


def _clamp(values: F64Matrix, parameters: tuple[F64s, ...], _grid: Grid) -> F64Matrix:
    low, high = parameters
    out = np.empty_like(values)
    clamp_rows(for_reading(values), for_reading(low), for_reading(high), out)
    return out


def _clamp_min(values: F64Matrix, parameters: tuple[F64s, ...], grid: Grid) -> F64Matrix:
    return _clamp(values, (parameters[0], np.full(grid.count, np.inf)), grid)


def _clamp_max(values: F64Matrix, parameters: tuple[F64s, ...], grid: Grid) -> F64Matrix:
    return _clamp(values, (np.full(grid.count, -np.inf), parameters[0]), grid)


def _timestamp(values: F64Matrix, _parameters: tuple[F64s, ...], grid: Grid) -> F64Matrix:
    """The evaluation timestamp, for any argument except a selector, whose samples have their own timestamps."""
    return np.where(missing(values), NO_SAMPLE, grid.timestamps() / 1000)


def _calendar(part: int, values: F64Matrix, _parameters: tuple[F64s, ...], _grid: Grid) -> F64Matrix:
    out = np.empty_like(values)
    calendar.calendar_rows(part, for_reading(values), out)
    return out


def _of_histogram(values: F64Matrix, _parameters: tuple[F64s, ...], _grid: Grid) -> F64Matrix:
    """No samples: native histograms are not stored."""
    return np.full_like(values, NO_SAMPLE)


_OF_VALUES: Final[Mapping[str, Callable[[F64Matrix], F64Matrix]]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "deg": _degrees,
    "exp": np.exp,
    "floor": np.floor,
    "ln": np.log,
    "log10": _log10,
    "log2": _log2,
    "rad": _radians,
    "sgn": _sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
_OF_CALENDAR: Final = {
    "day_of_month": calendar.DAY_OF_MONTH,
    "day_of_week": calendar.DAY_OF_WEEK,
    "day_of_year": calendar.DAY_OF_YEAR,
    "days_in_month": calendar.DAYS_IN_MONTH,
    "hour": calendar.HOUR,
    "minute": calendar.MINUTE,
    "month": calendar.MONTH,
    "year": calendar.YEAR,
}
_OF_HISTOGRAMS: Final = ("histogram_avg", "histogram_count", "histogram_stddev", "histogram_stdvar", "histogram_sum")

ELEMENTWISE: Final[Mapping[str, ElementwiseFunction]] = MappingProxyType(
    {
        **{name: _of_value(function) for name, function in _OF_VALUES.items()},
        **{name: ElementwiseFunction(partial(_calendar, part), is_of_time=True) for name, part in _OF_CALENDAR.items()},
        **{name: ElementwiseFunction(_of_histogram) for name in _OF_HISTOGRAMS},
        "clamp": ElementwiseFunction(_clamp),
        "clamp_max": ElementwiseFunction(_clamp_max),
        "clamp_min": ElementwiseFunction(_clamp_min),
        "round": ElementwiseFunction(_round, optional=(1.0,)),
        "timestamp": ElementwiseFunction(_timestamp),
    }
)
