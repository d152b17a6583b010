"""Functions of single values, compared with Go's definitions and Python's calendar."""

import calendar
import math
from datetime import UTC, datetime

import numpy as np
import pytest

from strandline.arrays import F64s
from strandline.promql.arithmetic import missing
from strandline.promql.elementwise import ELEMENTWISE, evaluate_elementwise
from strandline.promql.values import NO_SAMPLE, Grid

pytestmark = pytest.mark.unit

INF, NAN = math.inf, math.nan
# Go's time for NaN and for values beyond 64-bit integers: 292277026596-12-04T15:30:08Z, a Sunday.
FAR = {
    "year": 292_277_026_596,
    "month": 12,
    "day_of_month": 4,
    "day_of_year": 339,
    "days_in_month": 31,
    "day_of_week": 0,
    "hour": 15,
    "minute": 30,
}


def grid(steps: int) -> Grid:
    return Grid(1_000, 500, steps)


def of(name: str, values: list[float], *parameters: list[float]) -> list[float]:
    given = tuple(np.array(parameter, dtype=np.float64) for parameter in parameters)
    found = evaluate_elementwise(name, np.array([values], dtype=np.float64), given, grid(len(values)))
    row: list[float] = found[0].tolist()
    return row


def same(found: list[float], expected: list[float]) -> bool:
    return np.allclose(found, expected, rtol=1e-15, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("abs", [-1.5, 0, -INF, NAN], [1.5, 0, INF, NAN]),
        ("ceil", [1.2, -1.2, -INF, NAN], [2, -1, -INF, NAN]),
        ("floor", [1.2, -1.2, INF, NAN], [1, -2, INF, NAN]),
        ("exp", [0, 1, -INF, INF, 800], [1, math.e, 0, INF, INF]),
        ("ln", [1, math.e, 0, -1, INF], [0, 1, -INF, NAN, INF]),
        ("log2", [8, 3, 0.125, 0, -1, INF, NAN], [3, math.log2(3), -3, -INF, NAN, INF, NAN]),
        ("log10", [100, 1, 0, -1, INF], [2, 0, -INF, NAN, INF]),
        ("sqrt", [4, 2, -1, INF], [2, math.sqrt(2), NAN, INF]),
        ("sgn", [-3, 0, 2, -INF, NAN], [-1, 0, 1, -1, NAN]),
        ("sin", [0, 1, INF], [0, math.sin(1), NAN]),
        ("cos", [0, 1, -INF], [1, math.cos(1), NAN]),
        ("tan", [0, 1, INF], [0, math.tan(1), NAN]),
        ("asin", [1, 2], [math.pi / 2, NAN]),
        ("acos", [1, -2], [0, NAN]),
        ("atan", [1, INF], [math.pi / 4, math.pi / 2]),
        ("sinh", [1, -INF], [math.sinh(1), -INF]),
        ("cosh", [1, -INF], [math.cosh(1), INF]),
        ("tanh", [1, INF], [math.tanh(1), 1]),
        ("asinh", [1, -INF], [math.asinh(1), -INF]),
        ("acosh", [2, 0.5], [math.acosh(2), NAN]),
        ("atanh", [0.5, 1, 2], [math.atanh(0.5), INF, NAN]),
        ("deg", [math.pi, INF], [180, INF]),
        ("rad", [180, NAN], [math.pi, NAN]),
    ],
)
def test_functions_of_a_value(name: str, values: list[float], expected: list[float]) -> None:
    assert same(of(name, values), expected)


def test_decimal_logarithms_are_gos() -> None:
    assert of("log10", [1000, 1e15, 0.0001]) == [3, 14.999999999999998, -3.9999999999999996]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_gaps_stay_gaps_and_no_value_becomes_one(name: str) -> None:
    parameters = {"clamp": 2, "clamp_min": 1, "clamp_max": 1}.get(name, 0)
    values = np.array([[NO_SAMPLE, NAN, 1.0], [-INF, NO_SAMPLE, -1.0]])
    found = evaluate_elementwise(name, values, (np.zeros(3),) * parameters, grid(3))
    assert (missing(found) == (missing(values) | name.startswith("histogram_"))).all()


def test_halves_are_rounded_up_to_the_nearest_multiple() -> None:
    assert of("round", [0.5, -0.5, 1.4, -1.6, INF]) == [1, 0, 1, -2, INF]
    assert same(of("round", [11, 1.13, 5, 5], [5, 0.1, -2, 0]), [10, 1.1, 4, NAN])


def test_clamp_prefers_infinities_to_nan() -> None:
    assert same(of("clamp", [-5, 5, 0.5, NAN, NAN], [0] * 5, [1, 1, 1, 1, -INF])[:4], [0, 1, 0.5, NAN])
    assert same(of("clamp_min", [-5, NAN, NAN, 3], [0, 0, INF, NAN]), [0, NAN, INF, NAN])
    assert same(of("clamp_max", [5, NAN, NAN, -INF], [1, 1, -INF, NAN]), [1, NAN, -INF, -INF])


def test_clamp_has_no_samples_where_the_minimum_exceeds_the_maximum() -> None:
    found = np.array(of("clamp", [1, 2, 3], [0, 2, 1], [1, 1, 1]))
    assert missing(found).tolist() == [False, True, False]
    assert found[[0, 2]].tolist() == [1, 1]


def test_the_timestamp_of_an_expression_is_its_step() -> None:
    assert of("timestamp", [7, 8, NAN]) == [1, 1.5, 2]


def timestamps() -> F64s:
    """All days around the ends of months of some years, and random seconds from the year 1 to 9999."""
    firsts = [
        datetime(year, month, 1, tzinfo=UTC) for year in (1, 4, 1900, 1970, 2000, 2024, 2100) for month in range(1, 13)
    ]
    days = [first.timestamp() + 86_400 * days for first in firsts for days in range(-1 if first.year > 1 else 0, 1)]
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    drawn = np.random.default_rng(5).uniform(-62_135_596_800, last, 2_000)
    return np.concatenate([days, [second - 1.0 for second in days if second > -62_135_596_800], drawn])


def test_dates_are_those_of_the_calendar() -> None:
    seconds = timestamps()
    dates = [datetime.fromtimestamp(int(second), UTC) for second in seconds.tolist()]
    for name, part in {
        "year": lambda date: date.year,
        "month": lambda date: date.month,
        "day_of_month": lambda date: date.day,
        "day_of_year": lambda date: date.timetuple().tm_yday,
        "days_in_month": lambda date: calendar.monthrange(date.year, date.month)[1],
        "day_of_week": lambda date: date.isoweekday() % 7,
        "hour": lambda date: date.hour,
        "minute": lambda date: date.minute,
    }.items():
        assert ELEMENTWISE[name].is_of_time
        assert of(name, seconds.tolist()) == list(map(part, dates)), name


@pytest.mark.parametrize("name", FAR)
def test_values_without_a_date_have_the_date_of_go(name: str) -> None:
    assert of(name, [NAN, INF, -INF, 1e300, 2.0**63, -(2.0**63)]) == [FAR[name]] * 6


def test_fractions_of_seconds_are_cut_towards_zero() -> None:
    assert of("minute", [59.9, -0.9, -1.0, -60.5]) == [0, 0, 59, 59]
