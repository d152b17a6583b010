"""A row's TTL is never shorter than its lifetime, and not much longer."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.cassandra.expiry import seconds_to_live
from strandline.store.cassandra.manifest_rows import cut_values, group_values
from support.manifest_rows import cut, row

pytestmark = pytest.mark.unit

DAY = 86_400_000


@given(written=st.integers(0, 2**42), length=st.integers(1, 2**40))
def test_a_row_outlives_its_lifetime_by_a_hundredth_of_it_and_at_most_ten_minutes(written: int, length: int) -> None:
    seconds = seconds_to_live(length)
    # A server counts from the second that it is in.
    earliest_end = (written // 1_000 + seconds) * 1_000
    assert written + length <= earliest_end
    assert seconds * 1_000 < length + 2_000 + min(600_000, length / 100 + 1_000)


@given(length=st.integers(0, 2**40))
def test_an_expired_lifetime_gets_the_minimum_ttl(length: int) -> None:
    assert seconds_to_live(-length) == 1


def test_a_group_row_that_was_written_at_once_outlives_a_cut_that_took_half_a_minute() -> None:
    """A cut whose group's rows are gone looks like a hole in what is stored."""
    assert seconds_to_live(DAY, margins=2) > seconds_to_live(DAY) + 30
    shard, expires = ("metrics", 0), 10 * DAY
    *_, of_cut = cut_values(shard, 1, replace(cut(7, 0, 1), expires=expires), 9 * DAY)
    *_, of_group = group_values(shard, 1, replace(row(7, 0), expires=expires), 9 * DAY)
    assert (of_cut, of_group) == (seconds_to_live(DAY), seconds_to_live(DAY, margins=2))
