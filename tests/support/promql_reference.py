"""Functions over ranges in plain Python, sample by sample, with which compiled kernels are compared.

Sums are exact (fractions) where all numbers are finite, so the reference does not share the kernels' algorithm.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

Sample = tuple[int, float]
Window = Sequence[Sample]


def window_of(samples: Sequence[Sample], end: int, length: int) -> list[Sample]:
    """The samples in (end - length, end]."""
    return [(time, value) for time, value in samples if end - length < time <= end]


def _values(window: Window) -> list[float]:
    return [value for _, value in window]


def _extrapolated(window: Window, end: int, length: int, *, is_counter: bool, is_rate: bool) -> float | None:
    if len(window) < 2:
        return None
    times, values = [time for time, _ in window], _values(window)
    rise = values[-1] - values[0]
    if is_counter:
        for before, now in itertools.pairwise(values):
            if now < before:
                rise += before
    covered = (times[-1] - times[0]) / 1000
    interval = covered / (len(window) - 1)
    to_start, to_end = (times[0] - (end - length)) / 1000, (end - times[-1]) / 1000
    if to_start >= interval * 1.1:
        to_start = interval / 2
    if is_counter and rise > 0 and values[0] >= 0:
        to_zero = covered * (values[0] / rise)
        to_start = min(to_start, to_zero)
    if to_end >= interval * 1.1:
        to_end = interval / 2
    factor = (covered + to_start + to_end) / covered
    return rise * (factor / (length / 1000) if is_rate else factor)


def _last_difference(window: Window, *, is_rate: bool) -> float | None:
    if len(window) < 2:
        return None
    (time_before, before), (time, last) = window[-2:]
    if not is_rate:
        return last - before
    return (last if last < before else last - before) / ((time - time_before) / 1000)


def _exactly(numbers: Sequence[float], compute: Callable[[list[Fraction]], Fraction | float]) -> float:
    if not all(map(math.isfinite, numbers)):
        return math.nan
    exact = compute(list(map(Fraction, numbers)))
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _sum(window: Window) -> float:
    values = _values(window)
    if all(map(math.isfinite, values)):
        return _exactly(values, sum)
    return sum(values)


def _mean(window: Window) -> float:
    values = _values(window)
    if all(map(math.isfinite, values)):
        return _exactly(values, lambda exact: sum(exact) / len(exact))
    return sum(values)


def _variance(window: Window) -> float:
    def compute(exact: list[Fraction]) -> Fraction:
        mean = sum(exact) / len(exact)
        return sum((number - mean) ** 2 for number in exact) / len(exact)

    return _exactly(_values(window), compute)


def _line(window: Window, origin: int) -> tuple[float, float]:
    values = _values(window)
    if not all(map(math.isfinite, values)):
        return math.nan, math.nan
    xs = [Fraction(time - origin, 1000) for time, _ in window]
    ys = list(map(Fraction, values))
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)
    return float(slope), float(mean_y - slope * mean_x)


def _deriv(window: Window) -> float | None:
    return _line(window, window[0][0])[0] if len(window) >= 2 else None


def _predict_linear(window: Window, seconds: float, now: int) -> float | None:
    if len(window) < 2:
        return None
    slope, value = _line(window, now)
    return slope * seconds + value


def _quantile(window: Window, quantile: float) -> float:
    if math.isnan(quantile):
        return math.nan
    if not 0 <= quantile <= 1:
        return math.copysign(math.inf, quantile)
    ordered = sorted(_values(window), key=lambda value: (not math.isnan(value), 0.0 if math.isnan(value) else value))
    rank = quantile * (len(ordered) - 1)
    lower = math.floor(rank)
    upper = min(lower + 1, len(ordered) - 1)
    weight = rank - lower
    return ordered[lower] * (1 - weight) + ordered[upper] * weight


def _extreme(window: Window, choose: Callable[[list[float]], float]) -> float:
    numbers = [value for value in _values(window) if not math.isnan(value)]
    return choose(numbers) if numbers else math.nan


def _pairs(window: Window) -> list[tuple[float, float]]:
    values = _values(window)
    return list(itertools.pairwise(values))


def _is_change(before: float, now: float) -> bool:
    return before != now and not (math.isnan(before) and math.isnan(now))


def evaluate(  # noqa: PLR0912 - one for each function
    name: str, window: Window, end: int, length: int, parameter: float = 0.0
) -> float | None:
    """A function over one window; None if it has no result."""
    match name:
        case _ if not window:
            return None
        case "rate" | "increase" | "delta":
            return _extrapolated(window, end, length, is_counter=name != "delta", is_rate=name == "rate")
        case "irate" | "idelta":
            return _last_difference(window, is_rate=name == "irate")
        case "deriv":
            return _deriv(window)
        case "predict_linear":
            return _predict_linear(window, parameter, end)
        case "resets":
            return float(sum(now < before for before, now in _pairs(window)))
        case "changes":
            return float(sum(_is_change(before, now) for before, now in _pairs(window)))
        case "sum_over_time":
            return _sum(window)
        case "avg_over_time":
            return _mean(window)
        case "min_over_time":
            return _extreme(window, min)
        case "max_over_time":
            return _extreme(window, max)
        case "count_over_time":
            return float(len(window))
        case "present_over_time":
            return 1.0
        case "first_over_time":
            return window[0][1]
        case "last_over_time":
            return window[-1][1]
        case "stdvar_over_time":
            return _variance(window)
        case "stddev_over_time":
            return math.sqrt(_variance(window))
        case "quantile_over_time":
            return _quantile(window, parameter)
        case _:
            raise AssertionError(f"The reference has no {name}")
