"""Parsing and formatting times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.client.moments import (
    DEFAULT_LOOKBACK_MS,
    MAX_POINTS,
    default_step,
    format_duration,
    format_time,
    parse_length,
    parse_moment,
)
from strandline.node.http.times import parse_duration

pytestmark = pytest.mark.unit

HOUR = 3_600_000
DAY = 24 * HOUR
MIDNIGHT = 20_408 * DAY
NOW = MIDNIGHT + 10 * HOUR + 1234


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("now", NOW),
        ("NOW", NOW),
        ("today", MIDNIGHT),
        ("yesterday", MIDNIGHT - DAY),
        ("-1h", NOW - HOUR),
        ("- 1h", NOW - HOUR),
        ("now-1h30m", NOW - 90 * 60_000),
        ("now - 5m", NOW - 300_000),
        ("now+5m", NOW + 300_000),
        ("+5m", NOW + 300_000),
        ("1h ago", NOW - HOUR),
        (" 2d ago ", NOW - 2 * DAY),
        ("1763290800", 1_763_290_800_000),
        ("1763290800.25", 1_763_290_800_250),
        ("2025-11-16T11:00:00Z", 1_763_290_800_000),
        ("2025-11-16T12:00:00.5+01:00", 1_763_290_800_500),
        ("2025-11-16", 1_763_251_200_000),
        ("0", 0),
    ],
)
def test_a_time_may_have_any_of_these_formats(written: str, moment: int) -> None:
    assert parse_moment(written, NOW) == moment


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("soon", 'not a valid time; use 2026-11-16T10:00:00Z, .* or "1h ago"'),
        ("", "not a valid time"),
        ("-3600", "a negative number; for a time before now, add a unit, such as -3600s"),
        ("2025-11-16T10:00", "a time without a zone; add Z"),
        ("2025-11-16 10:00:00", "a time without a zone"),
        ("2025-02-30", "a date or a time of day that does not exist"),
        ("1x ago", "not a duration"),
        ("-1h5", "not a valid time"),
    ],
)
def test_an_invalid_time_is_refused_with_the_valid_formats(written: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}"):
        parse_moment(written, NOW)


def test_a_length_is_a_duration_or_a_positive_number_of_seconds() -> None:
    assert (parse_length("15s"), parse_length("0.5"), parse_length("1h30m")) == (
        15_000,
        500,
        5_400_000,
    )
    for written in ("0", "0s", "-5"):
        with pytest.raises(ValueError, match="not positive"):
            parse_length(written)
    with pytest.raises(ValueError, match="not a duration such as"):
        parse_length("often")


def test_times_are_displayed_in_utc_with_milliseconds_only_if_needed() -> None:
    assert format_time(1_763_290_800_000) == "2025-11-16T11:00:00Z"
    assert format_time(1_763_290_800_025) == "2025-11-16T11:00:00.025Z"
    assert format_time(-1) == "1969-12-31T23:59:59.999Z"
    assert format_time(2**53) == "9007199254740.992", "beyond the calendar"


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_displayed_time_can_be_parsed(moment: int) -> None:
    assert parse_moment(format_time(moment), NOW) == moment


@given(st.integers(1, 10**11))
def test_a_displayed_duration_can_be_parsed(length: int) -> None:
    assert parse_duration(format_duration(length)) == length


@given(st.integers(0, 10**13), st.integers(1, 1000))
def test_the_default_step_limits_the_points_and_is_a_multiple_of_a_second(length: int, points: int) -> None:
    step = default_step(length, points)
    assert step >= 1000
    assert step % 1000 == 0
    assert length // step <= MAX_POINTS
    assert length // step <= points or step <= DEFAULT_LOOKBACK_MS or length // MAX_POINTS >= DEFAULT_LOOKBACK_MS


def test_the_default_step_is_a_round_duration() -> None:
    assert [default_step(length, 60) // 1000 for length in (0, HOUR, 3 * HOUR)] == [1, 60, 300]


@pytest.mark.parametrize("length", [6 * HOUR, 2 * DAY, 38 * DAY])
def test_the_default_step_misses_no_sample_of_a_long_range(length: int) -> None:
    assert default_step(length, 60) == DEFAULT_LOOKBACK_MS


def test_the_default_step_only_exceeds_the_lookback_to_stay_below_max_points() -> None:
    assert default_step(39 * DAY, 60) == 2 * DEFAULT_LOOKBACK_MS
    assert default_step(1000 * DAY, 60) == 3 * HOUR
