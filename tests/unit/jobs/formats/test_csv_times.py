from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import Fatal
from strandline.jobs.formats.csv_options import CsvOptions, CsvValue
from strandline.jobs.formats.csv_rows import parse_csv
from strandline.jobs.formats.time_formats import PatternTime, Rfc3339Time, TimeFormat, UnixTime
from support.damaged_texts import array

pytestmark = pytest.mark.unit

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "UTC"]
LOCAL = "%Y-%m-%d %H:%M:%S"


def times(texts: list[str], form: TimeFormat) -> list[int | None]:
    """The milliseconds of each text, None for one that is bad."""
    options = CsvOptions(2, (CsvValue(1, "m"),), 0, form, delimiter=";")
    block = parse_csv(array("".join(f'"{text}";{row}\n' for row, text in enumerate(texts)).encode()), 1, options)
    found: list[int | None] = [None] * len(texts)
    for row, time in zip(block.values.tolist(), block.times.tolist(), strict=True):
        found[int(row)] = time
    assert block.bad.total == found.count(None)
    return found


def millis(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@given(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),  # noqa: DTZ001
    st.integers(-1439, 1439),
    st.sampled_from("Tt "),
)
def test_rfc_3339_times_are_read_as_python_reads_them(local: datetime, east: int, between: str) -> None:
    moment = local.replace(tzinfo=timezone(timedelta(minutes=east)))
    assert times([moment.isoformat(sep=between)], Rfc3339Time()) == [millis(moment)]


def test_rfc_3339_takes_z_and_any_number_of_digits_up_to_nanoseconds() -> None:
    texts = ["2024-05-01T12:00:00Z", "2024-05-01t12:00:00.1z", "2024-05-01 12:00:00.123456789+00:00"]
    start = 1_714_564_800_000
    assert times(texts, Rfc3339Time()) == [start, start + 100, start + 123]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-05-01",
        "2024-05-01T12:00:00",
        "2024-05-01T12:00Z",
        "2024-05-01T12:00:00.Z",
        "2024-05-01T12:00:00.1234567890Z",
        "2024-05-01T12:00:00+0200",
        "2024-05-01T12:00:00+02",
        "2024-05-01T12:00:00Zx",
        "2024-02-30T12:00:00Z",
        "2023-02-29T12:00:00Z",
        "2024-13-01T12:00:00Z",
        "2024-05-01T24:00:00Z",
        "2024-05-01T12:60:00Z",
        "2024-05-01X12:00:00Z",
        "2024-5-01T12:00:00Z",
        "0000-05-01T12:00:00Z",
        "2024-05-01T12:00:00+25:00",
    ],
)
def test_a_time_that_is_not_rfc_3339_is_bad(text: str) -> None:
    assert times([text], Rfc3339Time()) == [None]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%d/%b/%Y:%H:%M:%S %z", "10/Oct/2000:13:55:36 -0700"),
        ("%d/%b/%Y:%H:%M:%S %z", "1/dec/2020:1:2:3 +05:30"),
        ("%Y%m%d%H%M%S", "20240229235959"),
        ("%Y-%m-%dT%H:%M:%S.%f%z", "2024-05-01T12:00:00.123456Z"),
        ("%H:%M on %d.%m.%Y", "9:05 on 7.3.1969"),
        ("100%% %Y %b %d", "100% 2024 Feb 29"),
        ("Jahr %Y § %m § %d", "Jahr 2024 § 05 § 01"),
    ],
)
def test_patterns_are_read_as_strptime_reads_them(pattern: str, text: str) -> None:
    moment = datetime.strptime(text, pattern)  # noqa: DTZ007 - with an offset or without, as the pattern has it.
    expected = millis(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    assert times([text], PatternTime(pattern)) == [expected]


@pytest.mark.parametrize(
    "text", ["2024-05-01", "2024-05-01 12:00:00 ", "24-05-01 12:00:00", "2024-05-32 12:00:00", "2024-05-01 12:00:60"]
)
def test_a_text_that_does_not_fit_its_pattern_is_bad(text: str) -> None:
    assert times([text], PatternTime(LOCAL)) == [None]


@pytest.mark.parametrize("zone", ZONES)
def test_local_times_of_many_years_are_those_of_zoneinfo_without_fold(zone: str) -> None:
    moment, last = datetime(1851, 1, 1), datetime(2199, 12, 1)  # noqa: DTZ001
    moments = []
    while moment < last:
        moments.append(moment)
        moment += timedelta(days=9, hours=5, minutes=17, seconds=3)
    # And each quarter of an hour of two weeks around changes of the clock.
    for start in (datetime(2024, 3, 28), datetime(2024, 10, 24), datetime(2024, 3, 8), datetime(2024, 11, 1)):  # noqa: DTZ001
        moments += [start + timedelta(minutes=15 * step) for step in range(96 * 4)]
    expected = [millis(moment.replace(tzinfo=ZoneInfo(zone))) for moment in moments]
    assert times([moment.strftime("%Y-%m-%d %H:%M:%S") for moment in moments], PatternTime(LOCAL, zone)) == expected


def test_an_ambiguous_local_time_is_the_earlier_instant_and_a_skipped_one_counts_on() -> None:
    found = times(["2024-10-27 02:30:00", "2024-03-31 02:30:00"], PatternTime(LOCAL, "Europe/Berlin"))
    assert found == [
        millis(datetime(2024, 10, 27, 0, 30, tzinfo=UTC)),
        millis(datetime(2024, 3, 31, 1, 30, tzinfo=UTC)),
    ]


def test_local_times_far_from_today_are_bad_unless_they_are_in_utc() -> None:
    texts = ["1700-01-01 00:00:00", "2200-01-01 00:00:00"]
    assert times(texts, PatternTime(LOCAL, "Europe/Berlin")) == [None, None]
    assert None not in times(texts, PatternTime(LOCAL))


@pytest.mark.parametrize("pattern", ["%Y-%m-%d %X", "%Y-%m", "%H:%M", "%Y-%m-%d %d", "%Y %b %m %d", "%Y-%m-%d %"])
def test_a_pattern_that_gives_no_date_or_has_unknown_parts_is_refused(pattern: str) -> None:
    with pytest.raises(Fatal, match="the time format"):
        PatternTime(pattern)


def test_an_unknown_zone_or_unit_is_refused_by_name() -> None:
    with pytest.raises(Fatal, match="Mars/Olympus"):
        times(["2024-05-01 12:00:00"], PatternTime(LOCAL, "Mars/Olympus"))
    with pytest.raises(Fatal, match="fortnight"):
        UnixTime("fortnight")  # type: ignore[arg-type]
