"""Durations: literals, formatting and arithmetic."""

import pytest

from strandline.promql.durations import duration_seconds, milliseconds, printed
from strandline.promql.errors import ParseError
from strandline.promql.expressions import MatrixSelector, Subquery, VectorSelector
from strandline.promql.parser import parse

pytestmark = pytest.mark.unit

STEP_MS = 30_000
RANGE_MS = 3_600_000


def range_of(written: str) -> int:
    query = f"up[{written}]"
    selector = parse(query)
    assert isinstance(selector, MatrixSelector)
    return milliseconds(selector.range, query=query, step_ms=STEP_MS, range_ms=RANGE_MS)


def offset_of(written: str) -> int:
    query = f"up offset {written}"
    selector = parse(query)
    assert isinstance(selector, VectorSelector)
    assert selector.offset is not None
    return milliseconds(selector.offset, query=query, step_ms=STEP_MS, range_ms=RANGE_MS, may_be_negative=True)


@pytest.mark.parametrize(
    ("written", "length"),
    [
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("90", 90_000),
        ("0.25", 250),
        ("0.0015", 1),
        ("1e2", 100_000),
        ("0x10", 16_000),
        ("1m + 30", 90_000),
        ("1h - 5m * 2", 3_000_000),
        ("(1h - 5m) * 2", 6_600_000),
        ("1h / 7", 514_285),
        ("7m % 2m", 60_000),
        ("2 ^ 3 ^ 2", 512_000),
        ("-2 ^ 2 + 1m", 56_000),
        ("-(-(5m))", 300_000),
        ("step()", 30_000),
        ("2*STEP()", 60_000),
        ("range() / 4", 900_000),
        ("max_of(step(), 1m)", 60_000),
        ("min_of(range(), 10m) + 1s", 601_000),
        ("Max_Of(1, min_of(2, 3))", 2_000),
    ],
)
def test_values_of_ranges(written, length):
    assert range_of(written) == length


@pytest.mark.parametrize(
    ("written", "length"),
    [
        ("5m", 300_000),
        ("-5m", -300_000),
        ("+1.5", 1_500),
        ("-0.0015", -1),
        ("-step()", -30_000),
        ("+range()", 3_600_000),
        ("-(1m + 30)", -90_000),
        ("(1m - 2m)", -60_000),
        ("(1m) * 3", 180_000),
        ("--1m + 5", 65_000),
        ("-max_of(1m, 2m)", -120_000),
        ("(0)", 0),
    ],
)
def test_values_of_offsets(written, length):
    assert offset_of(written) == length


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("1m - 1m", "duration must be greater than 0"),
        ("step() - 1h", "duration must be greater than 0"),
        ("5m / (step() - 30)", "division by zero"),
        ("5m % (1m - 60s)", "modulo by zero"),
        ("10 ^ 400", "duration is NaN or infinite"),
        ("(-8) ^ 0.5", "duration is NaN or infinite"),
        ("(0) ^ -1", "duration is NaN or infinite"),
        ("10 ^ 12", "duration is out of range"),
    ],
)
def test_durations_that_are_invalid_in_a_query_are_rejected_at_their_position(written, fault):
    with pytest.raises(ParseError, match=fault) as raised:
        range_of(written)
    assert raised.value.span.start == len("up[") + (written.startswith("(") and "^" not in written)


def test_steps_of_subqueries_are_durations_too():
    query = "up[1h:step() * 2]"
    subquery = parse(query)
    assert isinstance(subquery, Subquery)
    assert subquery.step is not None
    assert milliseconds(subquery.step, query=query, step_ms=STEP_MS, range_ms=0) == 60_000


@pytest.mark.parametrize("milliseconds_", [0, 1, 999, 1000, 60_000, 3_599_999, 86_400_000, 604_800_000, 31_536_000_000])
@pytest.mark.parametrize("times", [1, 2, 13])
def test_printed_durations_have_the_same_value(milliseconds_, times):
    seconds = milliseconds_ * times / 1000
    assert duration_seconds(printed(seconds)) == seconds
    assert printed(-seconds).removeprefix("-") == printed(seconds)
