"""Times and durations are parsed as in Prometheus."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.http.times import EARLIEST_MS, LATEST_MS, parse_duration, parse_step, parse_time

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("0", 0),
        ("1", 1000),
        ("-1", -1000),
        ("+1.5", 1500),
        ("1435781451.781", 1435781451781),
        (".001", 1),
        ("1.", 1000),
        ("1e3", 1_000_000),
        ("1e300", LATEST_MS),
        ("-1e300", EARLIEST_MS),
        ("1e308", LATEST_MS),
        ("99999999999999999999", LATEST_MS),
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:30:00-00:30", 0),
        ("2015-07-01T20:10:51.781Z", 1435781451781),
        # Fractions of a millisecond are truncated, also before 1970.
        ("1970-01-01T00:00:00.0019999Z", 1),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("-292273086-05-16T16:47:06Z", EARLIEST_MS),
        ("292277025-08-18T07:12:54.999999999Z", LATEST_MS),
        ("0001-01-01T00:00:00Z", -62135596800000),
        ("9999-12-31T23:59:59Z", 253402300799000),
    ],
)
def test_times_are_read(written: str, expected: int) -> None:
    assert parse_time(written) == expected


@pytest.mark.parametrize(
    "written",
    ["", "abc", "NaN", "Inf", "+inf", "1_000", " 1", "1 ", "\u0661", "0x10", "1e", "--1", "1e400", "-1e9999",
     "2015-07-01", "2015-07-01T20:10:51", "2015-02-30T00:00:00Z", "2015-07-01T24:00:00Z", "2015-07-01T00:00:60Z",
     "2015-07-01T00:00:00+24:00",
     "2015-07-01T00:00:00+01:60", "2015-07-01 20:10:51Z", "now", "5m", "1" * 100],
)  # fmt: skip
def test_an_invalid_time_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_time(written)


def test_a_plus_that_was_decoded_as_a_space_is_explained() -> None:
    with pytest.raises(ValueError, match="%2B"):
        parse_time("2015-07-01T20:10:51 02:00")


@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),  # noqa: DTZ001 - the zone is drawn separately
    st.integers(-23 * 60, 23 * 60),
)
def test_any_time_in_any_zone_is_parsed(drawn: datetime, minutes: int) -> None:
    zoned = drawn.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    expected = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert parse_time(zoned.isoformat()) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [("0", 0), ("5m", 300_000), ("1h30m", 5_400_000), ("1d", 86_400_000), ("1w", 604_800_000), ("1y", 31_536_000_000),
     ("1y2w3d4h5m6s7ms", 31_536_000_000 + 14 * 86_400_000 + 3 * 86_400_000 + 14_706_007), ("100ms", 100), ("0s", 0)],
)  # fmt: skip
def test_durations_are_read(written: str, expected: int) -> None:
    assert parse_duration(written) == expected
    assert parse_step(written) == expected


@pytest.mark.parametrize(
    "written", ["", "5", "m", "5 m", "30m1h", "1m1m", "-5m", "1.5h", "5M", "5min", "999999999y", "1" * 70 + "s"]
)
def test_an_invalid_duration_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_duration(written)


@pytest.mark.parametrize(("written", "expected"), [("15", 15_000), ("0.5", 500), ("1e1", 10_000), ("-3", -3000)])
def test_a_step_may_be_seconds(written: str, expected: int) -> None:
    assert parse_step(written) == expected


def test_a_step_is_never_infinite() -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_step("1e400")
