"""A row's life in seconds is never shorter than it must be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.cassandra.expiry import seconds_to_live

pytestmark = pytest.mark.unit


@given(now=st.integers(0, 2**42), life=st.integers(1, 2**40))
def test_a_row_outlives_its_expiry_by_less_than_two_seconds(now: int, life: int) -> None:
    seconds = seconds_to_live(now + life, now)
    # A server counts from the second that it is in.
    earliest_end = (now // 1_000 + seconds) * 1_000
    assert now + life <= earliest_end
    assert seconds * 1_000 < life + 2_000


@given(now=st.integers(0, 2**42), past=st.integers(0, 2**42))
def test_what_has_expired_lives_for_the_least_that_there_is(now: int, past: int) -> None:
    assert seconds_to_live(now - past, now) == 1
