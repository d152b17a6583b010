"""The end of a closed bucket is confirmed once everything is read that had reached the log by the end of its time."""

import numpy as np
import pytest

from strandline.recovery.cutting import NO_TIME, Cutting
from strandline.recovery.end_confirmation import EndConfirmation

pytestmark = pytest.mark.unit

HOUR = 3_600_000
END_OF_9 = 10 * HOUR


@pytest.fixture
def ends() -> EndConfirmation:
    return EndConfirmation(Cutting(HOUR, 30_000))


def read(ends: EndConfirmation, *times: int) -> None:
    ends.read(np.array(times, dtype=np.int64))


def test_a_shard_that_has_read_up_to_the_end_of_the_bucket_s_time_confirms_its_end_at_once(
    ends: EndConfirmation,
) -> None:
    assert ends.closed(9, END_OF_9)
    assert not ends.is_pending


def test_a_shard_that_is_behind_confirms_the_end_once_it_has_read_up_to_the_end_of_the_bucket_s_time(
    ends: EndConfirmation,
) -> None:
    assert not ends.closed(9, END_OF_9 - 1)
    read(ends, END_OF_9, END_OF_9 + 1)
    assert ends.confirmed(END_OF_9 - 1) == []
    assert ends.is_pending
    assert ends.confirmed(END_OF_9) == [9]
    assert ends.confirmed(END_OF_9) == [], "only once"


@pytest.mark.parametrize("time", [END_OF_9 - 1, NO_TIME])
def test_a_record_that_may_be_of_the_bucket_s_time_leaves_the_end_unconfirmed(ends: EndConfirmation, time: int) -> None:
    ends.closed(9, 0)
    read(ends, END_OF_9 + 5, time, END_OF_9 + 7)
    assert not ends.is_pending
    assert ends.confirmed(END_OF_9) == []


def test_each_of_several_ends_is_confirmed_for_itself(ends: EndConfirmation) -> None:
    ends.closed(8, 0)
    ends.closed(9, 0)
    read(ends, END_OF_9 - 1)
    ends.closed(10, 0)
    read(ends, END_OF_9 + HOUR)
    assert ends.confirmed(END_OF_9 + HOUR) == [8, 10], "the record may be of bucket 9"


def test_records_before_a_bucket_was_closed_do_not_count(ends: EndConfirmation) -> None:
    read(ends, 0)
    ends.closed(9, 0)
    read(ends)
    assert ends.confirmed(END_OF_9) == [9]


def test_an_end_that_was_given_up_stays_unconfirmed(ends: EndConfirmation) -> None:
    ends.closed(9, 0)
    ends.give_up()
    assert not ends.is_pending
    assert ends.confirmed(END_OF_9) == []
