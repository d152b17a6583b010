"""Time zones: each is in exactly one job, at whatever time the job is planned."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from strandline.jobs.sending.zones import LocalTime, due_at, group_zones, job_offset, whole_offset

pytestmark = pytest.mark.unit

NINE = LocalTime(9, 0)
HOUR = 3_600_000
# Around changes of daylight saving time in Europe, America, Australia and Lord Howe, and far from any.
MOMENTS = ("2026-11-18T12:00", "2026-03-29T00:30", "2026-10-25T00:30", "2026-03-08T06:30", "2026-11-01T05:30",
           "2026-04-04T14:30", "2026-10-03T15:30", "2026-12-31T23:59")  # fmt: skip


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def local(zone: str, moment: int) -> datetime:
    return datetime.fromtimestamp(moment / 1000, UTC).astimezone(ZoneInfo(zone))


@pytest.mark.parametrize("moment", MOMENTS)
def test_each_iana_zone_is_in_exactly_one_job_which_is_due_within_a_day(moment: str) -> None:
    now = ms(moment)
    zones = available_timezones()
    found = group_zones([*zones, "Mars/Olympus", ""], NINE, now)
    assert sorted(zone for group in found.groups for zone in group.zones) == sorted(zones)
    assert found.unknown == ("", "Mars/Olympus")
    offsets = [group.offset for group in found.groups]
    assert len(offsets) == len(set(offsets))
    for group in found.groups:
        assert now <= group.due_at < now + 24 * HOUR
        assert (group.due_at + group.offset * HOUR) % (24 * HOUR) == 9 * HOUR


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_job_is_due_at_the_local_time_of_its_zones_or_less_than_an_hour_after_it(moment: str) -> None:
    """Zones whose offset is not a whole number of hours are due later by the remainder. There is no such time where a
    change skips the local time on that day.
    """
    for group in group_zones(available_timezones(), NINE, ms(moment)).groups:
        for zone in group.zones:
            local_time = local(zone, group.due_at)
            if whole_offset(zone, group.due_at) == group.offset:
                assert local_time.hour == 9
            else:
                before = local(zone, ms(moment)).utcoffset()
                assert before != local(zone, ms(moment) + 24 * HOUR).utcoffset()


@pytest.mark.parametrize(
    ("zone", "offset"),
    [("Pacific/Chatham", 13), ("America/St_Johns", -4), ("Asia/Kathmandu", 5), ("Etc/GMT-14", 14), ("Etc/GMT+12", -12)],
)
def test_offsets_are_rounded_down(zone: str, offset: int) -> None:
    assert job_offset(zone, NINE, ms("2026-11-18T12:00")) == offset
    # In the southern winter Chatham has +12:45.
    if zone == "Pacific/Chatham":
        assert job_offset(zone, NINE, ms("2026-06-18T12:00")) == 12


def test_the_offset_at_the_due_moment_counts_and_not_the_present_one() -> None:
    evening = ms("2026-03-28T20:00")
    assert whole_offset("Europe/Berlin", evening) == 1
    assert job_offset("Europe/Berlin", NINE, evening) == 2
    assert due_at(2, NINE, evening) == ms("2026-03-29T07:00")


def test_a_local_time_that_occurs_twice_counts_once_and_one_that_is_skipped_counts_all_the_same() -> None:
    half_past_two = LocalTime(2, 30)
    # On 25 October it is 02:30 in Berlin at 00:30 and at 01:30 UTC; on 29 March at no time.
    assert due_at(
        job_offset("Europe/Berlin", half_past_two, ms("2026-10-25T00:00")), half_past_two, ms("2026-10-25T00:00")
    ) == ms("2026-10-25T00:30")
    skipped = ms("2026-03-29T00:00")
    assert due_at(job_offset("Europe/Berlin", half_past_two, skipped), half_past_two, skipped) == ms("2026-03-29T00:30")


def test_zones_stay_in_one_job_for_every_hour_of_a_year() -> None:
    """For zones that change by an hour, by half an hour, and on other days than Europe."""
    for zone in ("Europe/Berlin", "Australia/Lord_Howe", "America/New_York", "Africa/Casablanca"):
        at = datetime(2026, 1, 1, tzinfo=UTC)
        while at.year == 2026:
            now = int(at.timestamp() * 1000)
            (group,) = group_zones([zone], NINE, now).groups
            assert abs(local(zone, group.due_at).hour - 9) <= 1
            at += timedelta(hours=7)


@pytest.mark.parametrize("written", ["9:00", "24:00", "09:60", "0900", "09:0x", ""])
def test_an_invalid_time_of_day_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not a time of day such as 09:00"):
        LocalTime.parse(written)
    assert LocalTime.parse("23:05").milliseconds == 23 * HOUR + 5 * 60_000
