from dataclasses import replace

import pytest

from strandline.clock import ManualClock
from strandline.errors import Retryable
from strandline.node.page.hours import CachedHours, HourReadiness, hours_between
from strandline.recovery.cutting import Cutting
from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import NOT_READ_YET, StoredDataset, Verdict
from strandline.store.rows import LateSamples, ManifestRows
from support.manifest_rows import beginning, cut, manifest, row

pytestmark = pytest.mark.unit


class CountedHours:
    """Counts its calls, and returns the count as the revision."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: Retryable | None = None

    def hours(self, first: int, last: int) -> tuple[HourReadiness, ...]:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return tuple(
            HourReadiness(str(Period(hour)), hour * HOUR, Verdict.READY, self.calls, 0)
            for hour in range(first, last + 1)
        )


def test_an_answer_is_cached_for_some_seconds() -> None:
    source, clock = CountedHours(), ManualClock()
    hours = CachedHours(source, clock, cache_s=5)
    first = hours.hours(10, 12)
    clock.sleep(4.9)
    assert hours.hours(10, 12) == first
    clock.sleep(0.2)
    assert [hour.revision for hour in hours.hours(10, 12)] == [2, 2, 2]


def test_other_hours_are_not_cached() -> None:
    source = CountedHours()
    hours = CachedHours(source, ManualClock(), cache_s=5)
    hours.hours(10, 12)
    assert [hour.start for hour in hours.hours(11, 13)] == [11 * HOUR, 12 * HOUR, 13 * HOUR]
    assert source.calls == 2


def test_errors_are_not_cached() -> None:
    source = CountedHours()
    hours = CachedHours(source, ManualClock(), cache_s=5)
    source.error = Retryable("Kafka can't be reached")
    with pytest.raises(Retryable, match="Kafka"):
        hours.hours(10, 12)
    source.error = None
    assert len(hours.hours(10, 12)) == 3


def stored_up_to(last: int, *, late: int = 0) -> ManifestRows:
    """A partition with hours as buckets and one group, read from hour 90 on; `late` samples for hour 95 came with the
    last.
    """
    buckets = range(91, last + 1)
    rows = [row(bucket, 0) for bucket in buckets]
    if late:
        rows[-1] = replace(rows[-1], late=(LateSamples(95, late),))
    return manifest([beginning(90, 0), *(cut(bucket, bucket - 91, bucket - 90) for bucket in buckets)], rows)


def test_hours_in_a_row_have_the_same_readiness_as_single_hours() -> None:
    dataset = StoredDataset(
        "metrics", Cutting(HOUR, 0), 1, (stored_up_to(99), stored_up_to(97, late=7)), 0, 10_000 * HOUR
    )
    strip = hours_between(dataset, 94, 99)
    assert [hour.start for hour in strip] == [hour * HOUR for hour in range(94, 100)]
    assert [hour.verdict for hour in strip] == [Verdict.READY] * 4 + [Verdict.NOT_READY] * 2
    assert [hour.behind for hour in strip] == [()] * 4 + [(1,)] * 2
    assert [(hour.revision, hour.late_samples) for hour in strip] == [(0, 0), (1, 7), (0, 0), (0, 0), (0, 0), (0, 0)]
    assert strip[0].hour == "1970-01-04T22"


def test_an_unknown_hour_has_a_reason() -> None:
    dataset = StoredDataset("metrics", Cutting(HOUR, 0), 1, (stored_up_to(99),), 0, 10_000 * HOUR)
    [hour] = hours_between(dataset, 80, 80)
    assert (hour.verdict, hour.reason) == (Verdict.UNKNOWN, NOT_READ_YET)
