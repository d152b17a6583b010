"""Which buckets after the newest cut are complete, whatever times the brokers' clocks have given the records."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.arrays import I64s
from strandline.recovery.cut_planning import LogTimes, PlannedCut, planned_cuts
from strandline.recovery.cutting import NO_TIME, Cutting
from strandline.recovery.log_ends import LogEnds
from strandline.store.rows import CutRow
from support.manifest_rows import beginning, cut

pytestmark = pytest.mark.unit

HOUR, GRACE = 3_600_000, 30_000
CUTTING = Cutting(HOUR, GRACE)
LAST = cut(99, 400, 500)
LONG_AFTER = 10_000 * HOUR


def records(*times: int, first: int = 500) -> LogTimes:
    """A log with records of these times, from an offset on."""

    def offset_at(time: int) -> int | None:
        return next((first + position for position, found in enumerate(times) if found >= time), None)

    def read(start: int, end: int) -> Iterator[tuple[I64s, I64s]]:
        # In batches, as a log is read.
        for offset in range(start, end, 3):
            behind = min(end, offset + 3, first + len(times))
            if behind > offset:
                found = np.array(times[offset - first : behind - first], dtype=np.int64)
                yield np.arange(offset, behind, dtype=np.int64), found

    return LogTimes(offset_at, read)


def unread(offset_at: Callable[[int], int | None]) -> LogTimes:
    """A log whose times must not be read."""

    def read(_start: int, _end: int) -> Iterator[tuple[I64s, I64s]]:
        raise AssertionError("the times were read")

    return LogTimes(offset_at, read)


def planned(
    times: LogTimes,
    end: int,
    *,
    present: int = LONG_AFTER,
    high: int | None = None,
    read_to: int | None = None,
    max_buckets: int = 100,
) -> list[tuple[int, int, int]]:
    ends = LogEnds(0, end, end if high is None else high)
    found = planned_cuts(LAST, ends, present, times, CUTTING, read_to=read_to, max_buckets=max_buckets)
    return [(cut.bucket, cut.start, cut.end) for cut in found]


def deadline(bucket: int) -> int:
    return CUTTING.deadline(bucket)


def test_a_bucket_ends_with_the_first_record_past_its_deadline() -> None:
    times = unread(records(deadline(100) - 2, deadline(100) - 1, deadline(100), deadline(101) - 1).offset_at)
    assert planned(times, 504, present=deadline(101) - 1) == [(100, 500, 502)]


def test_no_bucket_is_complete_before_the_present_has_reached_its_deadline() -> None:
    """A broker whose clock is eight hours ahead closes nothing by that."""
    times = records(deadline(99), deadline(108), deadline(108))
    assert planned(times, 503, present=deadline(100) - 1) == []
    assert planned(times, 503, present=deadline(100)) == [(100, 500, 501)]


def test_after_a_period_without_records_one_record_closes_several_buckets_and_leaves_the_later_ones_empty() -> None:
    times = records(deadline(99), deadline(102), deadline(102) + 5)
    assert planned(times, 503, present=deadline(102) + 10) == [(100, 500, 501), (101, 501, 501), (102, 501, 501)]


def test_a_record_of_a_broker_that_was_ahead_closes_no_bucket_in_a_replay() -> None:
    """One record is eight hours ahead; the others determine where the buckets end."""
    times = records(
        deadline(99),
        deadline(108),
        deadline(100) - 1,
        deadline(100),
        deadline(101) - 1,
        deadline(101),
        deadline(101) + 1,
    )
    assert planned(times, 507, present=deadline(101) + 2) == [(100, 500, 503), (101, 503, 505)]


def test_a_record_ahead_of_the_present_closes_no_bucket_before_the_records_after_it() -> None:
    """It would close one bucket only, since the present has reached no other deadline."""
    times = records(deadline(108), deadline(100) - 5, deadline(100) + 1)
    assert planned(times, 503, present=deadline(100) + 2) == [(100, 500, 502)]
    assert planned(records(deadline(108), deadline(100) - 5), 502, present=deadline(100) + 2) == []


def test_a_record_ahead_in_an_earlier_bucket_does_not_close_the_later_ones_at_their_start() -> None:
    """Kafka's lookup still finds it, before the start of the bucket."""
    answered = records(deadline(100) - 1, deadline(100), deadline(101) - 1)
    times = LogTimes(lambda time: 450 if time < deadline(101) else None, answered.read)
    assert planned(times, 503, present=deadline(101) - 1) == [(100, 500, 501)]


def test_a_late_record_of_a_slow_clock_stays_in_its_bucket() -> None:
    """The leader's clock is slow: the bucket ends after its last record, so that none of them counts as late."""
    times = records(deadline(100) - 1, deadline(101), deadline(100) - 2, deadline(101), deadline(101) + 1)
    assert planned(times, 505, present=deadline(101) + 1) == [(100, 500, 503), (101, 503, 503)]


def test_records_without_a_time_close_nothing_and_stay_with_what_lies_before_them() -> None:
    """A shard that reads them does the same: the hour of their arrival is not ready without them."""
    times = records(NO_TIME, deadline(99), NO_TIME, deadline(102), NO_TIME, deadline(102))
    assert planned(times, 506, present=deadline(102)) == [(100, 500, 503), (101, 503, 503), (102, 503, 503)]
    assert planned(records(NO_TIME, NO_TIME), 502, present=deadline(100) + GRACE - 1) == []
    assert planned(records(NO_TIME, NO_TIME), 502, present=deadline(100) + GRACE) == [(100, 500, 502)]


def test_a_bucket_does_not_end_before_what_was_read_into_it() -> None:
    times = records(deadline(100), deadline(100) + 1, deadline(100) + 2)
    assert planned(times, 503, present=deadline(100) + 3, read_to=502) == [(100, 500, 502)]


def test_a_bucket_that_no_record_closes_ends_once_it_is_overdue() -> None:
    times = records(deadline(100) - 1)
    assert planned(times, 501, present=deadline(100) + GRACE - 1) == []
    assert planned(times, 501, present=deadline(100) + GRACE) == [(100, 500, 501)]


def test_idle_buckets_end_at_the_end_of_the_log_and_are_looked_up_once() -> None:
    lookups: list[int] = []

    def offset_at(time: int) -> int | None:
        lookups.append(time)
        return None

    found = planned(unread(offset_at), 503, present=deadline(102) + GRACE)
    assert found == [(100, 500, 503), (101, 503, 503), (102, 503, 503)]
    assert lookups == [deadline(100)]


def test_an_open_transaction_keeps_a_bucket_from_being_idle() -> None:
    """Its records may still belong to the bucket."""
    assert planned(records(), 503, high=504) == []


def test_a_record_after_the_pinned_end_closes_nothing() -> None:
    """It arrived after the end was pinned; the records before it belong to the bucket too."""
    times = unread(records(deadline(99), deadline(99), deadline(100)).offset_at)
    assert planned(times, 501, present=deadline(100)) == []
    assert planned(times, 502, present=deadline(100)) == [(100, 500, 502)]


def test_an_unreadable_record_closes_nothing() -> None:
    """Kafka's lookup by time may find a record after the start of an open transaction."""
    times = unread(records(deadline(99), deadline(99), deadline(100)).offset_at)
    assert planned(times, 501, high=503, present=deadline(100)) == []


def test_a_plan_has_at_most_max_buckets() -> None:
    assert len(planned(records(), 500, max_buckets=7)) == 7


def test_an_empty_topic_has_idle_buckets_only() -> None:
    ends, first = LogEnds(0, 0, 0), beginning(99, 0)
    overdue = deadline(100) + GRACE
    assert planned_cuts(first, ends, overdue, records(), CUTTING) == [PlannedCut(100, 0, 0)]
    assert planned_cuts(first, ends, overdue - 1, records(), CUTTING) == []


def test_a_log_that_ends_in_transaction_markers_is_cut_after_them() -> None:
    """No record has the offset `end - 1`, and readers do not see the offsets of markers."""
    # One record at 500, an aborted one at 501 and its marker at 502.
    assert planned(records(deadline(99)), 503, present=deadline(100) + GRACE) == [(100, 500, 503)]


TIMES = st.one_of(st.just(NO_TIME), st.integers(98 * HOUR, 112 * HOUR))


@given(
    times=st.lists(TIMES, max_size=30),
    present=st.integers(98 * HOUR, 115 * HOUR),
    hidden=st.integers(0, 3),
    read=st.integers(0, 30),
    most=st.integers(0, 20),
)
def test_whatever_the_times_cuts_join_and_stay_within_the_log_and_the_present(
    times: list[int], present: int, hidden: int, read: int, most: int
) -> None:
    end, read_to = 500 + len(times), 500 + min(read, len(times))
    found = planned(records(*times), end, present=present, high=end + hidden, read_to=read_to, max_buckets=most)
    assert len(found) <= most
    next_bucket, position = 100, 500
    for bucket, start, behind in found:
        assert (bucket, start) == (next_bucket, position)
        assert start <= behind <= end
        assert behind >= read_to
        assert present >= deadline(bucket)
        next_bucket, position = bucket + 1, behind


@given(times=st.lists(st.integers(98 * HOUR, 112 * HOUR), min_size=1, max_size=30))
def test_in_order_of_time_every_record_lies_in_the_bucket_of_its_time(times: list[int]) -> None:
    ordered = sorted(times)
    for bucket, start, behind in planned(records(*ordered), 500 + len(ordered), present=ordered[-1]):
        assert all(time < deadline(bucket) for time in ordered[: behind - 500])
        assert all(time >= deadline(bucket) for time in ordered[behind - 500 :])
        assert start <= behind


@given(times=st.lists(st.integers(98 * HOUR, 112 * HOUR), min_size=1, max_size=30), ahead=st.integers(0, 29))
def test_one_record_ahead_moves_no_other_record_to_another_bucket_if_it_would_close_several(
    times: list[int], ahead: int
) -> None:
    ordered = sorted(times)
    wrong = list(ordered)
    position = ahead % len(wrong)
    wrong[position] = 112 * HOUR + 8 * HOUR
    end, present = 500 + len(ordered), 112 * HOUR + 30 * HOUR
    if position in (0, len(wrong) - 1):
        return
    # It is in the bucket of its neighbours, as if it had the lowest time after it.
    counted = list(ordered)
    counted[position] = ordered[position + 1]
    assert planned(records(*wrong), end, present=present) == planned(records(*counted), end, present=present)


def test_a_planned_cut_becomes_a_row_with_what_is_lost_of_it() -> None:
    planned_cut = PlannedCut(100, 500, 520)
    row = CutRow(100, 500, 520, 9, closed_early=True)
    assert planned_cut.row(9) == row
    assert planned_cut.row(9, 510) == replace(row, lost_to=510)
    assert planned_cut.row(9, 530) == replace(row, lost_to=520)
    assert planned_cut.row(9, 500) == row
