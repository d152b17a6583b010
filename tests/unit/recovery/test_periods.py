"""Hours, days and times as text."""

import time
from collections.abc import Iterator

import pytest

from strandline.errors import ExitCode
from strandline.recovery.periods import HOUR, InvalidTime, Period, parse_moment, parse_period, utc_text

pytestmark = pytest.mark.unit

MINUTE = 60_000


@pytest.mark.parametrize(
    ("text", "first", "hours"),
    [
        ("1970-01-01T00", 0, 1),
        ("1970-01-01T23", 23, 1),
        ("1970-01-02", 24, 24),
        ("2026-11-15T10", 498_538, 1),
        ("2026-11-15", 498_528, 24),
        ("2024-02-29", 474_768, 24),
        ("1969-12-31T23", -1, 1),
    ],
)
def test_an_hour_and_a_day_are_read_and_written_the_same(text: str, first: int, hours: int) -> None:
    period = parse_period(text)
    assert (period.first_hour, period.hours, str(period)) == (first, hours, text)
    assert (period.start, period.end) == (first * HOUR, (first + hours) * HOUR)
    assert [hour.first_hour for hour in period.each_hour()] == list(range(first, first + hours))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2026-11-15T10Z", "has a time zone"),
        ("2026-11-15T10z", "has a time zone"),
        ("2026-11-15T10+01:00", "has a time zone"),
        ("2026-11-15T10-0500", "has a time zone"),
        ("2026-11-15T10:00+01", "has a time zone"),
        ("2026-11-15T10 Europe/Berlin", "has a time zone"),
        ("2026-11-15T10:00", "has minutes"),
        ("2026-11-15T10:30:00", "has minutes"),
        ("2026-11-15 10:30", "has minutes"),
        ("2026-11-15T24", "is not a valid time"),
        ("2026-02-29", "is not a valid time"),
        ("2026-13-01T00", "is not a valid time"),
        ("2026-11-15t10", "neither an hour nor a day"),
        ("2026-11-15T1", "neither an hour nor a day"),
        ("26-11-15", "neither an hour nor a day"),
        (" 2026-11-15", "neither an hour nor a day"),
        ("2026-11-15\n", "neither an hour nor a day"),
        ("٢٠٢٦-11-15", "neither an hour nor a day"),
        ("today", "neither an hour nor a day"),
        ("", "neither an hour nor a day"),
    ],
)
def test_text_that_is_not_an_hour_or_day_of_utc_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidTime, match=message) as caught:
        parse_period(text)
    assert repr(text) in caught.value.message
    assert caught.value.remedy
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.fixture(params=["Asia/Kathmandu", "America/St_Johns", "Pacific/Auckland"])
def _elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with another clock on its wall: hours off by halves and quarters, and by more than twelve."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_elsewhere")
def test_trap_local_time_is_never_mixed_with_utc() -> None:
    assert parse_period("2026-11-15T10").start == 498_538 * HOUR
    assert parse_moment("2026-03-29T02:30") == 1_774_751_400_000, "an hour that some local clocks do not have"
    assert utc_text(498_538 * HOUR) == "2026-11-15T10:00:00Z"
    assert str(Period(498_538)) == "2026-11-15T10"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01", 0),
        ("1970-01-02T03", 27 * HOUR),
        ("1970-01-01T00:30", 30 * MINUTE),
        ("1970-01-01T00:30:05", 30 * MINUTE + 5_000),
    ],
)
def test_a_time_may_have_any_precision_up_to_seconds(text: str, moment: int) -> None:
    assert parse_moment(text) == moment


@pytest.mark.parametrize("text", ["2026-11-15T10:30Z", "2026-11-15T10:30+02:00", "2026-11-15T10:3", "now", "12:00"])
def test_an_invalid_time_or_one_with_a_zone_is_refused(text: str) -> None:
    with pytest.raises(InvalidTime):
        parse_moment(text)
