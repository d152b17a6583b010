"""Which group of which bucket is stored next, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.shard.flush_schedule import Backoff, FlushSchedule

pytestmark = pytest.mark.unit

NOW = 1_000_000
SPREAD = 800
EVERY = frozenset(range(4))


def schedule(first_group: int = 0, *, groups: int = 4, spread: int = SPREAD) -> FlushSchedule:
    return FlushSchedule(groups, spread, first_group, Backoff(minimum=10, maximum=1_000))


def complete_order(flushes: FlushSchedule, below: int | None = None) -> list[tuple[int, int, int]]:
    """The complete schedule, in the order in which it is stored."""
    order = []
    while (upcoming := flushes.next_due(below)) is not None:
        order.append(upcoming)
        flushes.done(upcoming[2])
    return order


def test_a_new_schedule_is_empty() -> None:
    assert schedule().next_due() is None
    assert schedule().is_stored(7)


@pytest.mark.parametrize("first", range(4))
def test_the_groups_of_a_bucket_are_spread_over_the_interval_from_the_shards_own_group_on(first: int) -> None:
    flushes = schedule(first)
    flushes.add(7, EVERY, NOW, urgent=False)
    assert complete_order(flushes) == [(NOW + place * SPREAD // 4, 7, (first + place) % 4) for place in range(4)]


def test_all_groups_are_due_before_the_spread_is_over_however_it_divides() -> None:
    flushes = schedule(2, groups=7, spread=100)
    flushes.add(7, frozenset(range(7)), NOW, urgent=False)
    assert [due - NOW for due, _, _ in complete_order(flushes)] == [0, 14, 28, 42, 57, 71, 85]


def test_with_a_spread_of_zero_all_groups_are_due_at_once() -> None:
    flushes = schedule(spread=0)
    flushes.add(7, EVERY, NOW, urgent=False)
    assert complete_order(flushes) == [(NOW, 7, group) for group in range(4)]


def test_only_added_groups_wait() -> None:
    flushes = schedule()
    flushes.add(7, frozenset({1, 3}), NOW, urgent=False)
    assert not flushes.is_stored(7)
    assert flushes.is_stored(8)
    flushes.done(1)
    assert not flushes.is_stored(7)
    flushes.done(3)
    assert flushes.next_due() is None


def test_an_urgent_group_is_due_at_once() -> None:
    flushes = schedule(3)
    flushes.add(7, EVERY, NOW, urgent=True)
    assert complete_order(flushes) == [(NOW, 7, group) for group in range(4)]


def test_a_group_that_has_fallen_behind_is_due_at_once() -> None:
    flushes = schedule()
    flushes.add(7, frozenset({3}), NOW, urgent=False)
    flushes.add(8, EVERY, NOW + 500, urgent=False)
    assert complete_order(flushes) == [
        (NOW + 500, 7, 3),
        (NOW + 500, 8, 0),
        (NOW + 500, 8, 3),
        (NOW + 700, 8, 1),
        (NOW + 900, 8, 2),
    ], "the other groups are still spread"


def test_a_new_bucket_does_not_delay_groups_that_are_due() -> None:
    flushes = schedule()
    flushes.add(7, frozenset({0}), NOW, urgent=False)
    flushes.add(8, frozenset({0}), NOW + 500, urgent=False)
    assert complete_order(flushes) == [(NOW, 7, 0), (NOW + 500, 8, 0)]


def test_buckets_of_a_group_and_those_due_at_one_time_are_in_bucket_order() -> None:
    flushes = schedule()
    for bucket in (7, 8, 9):
        flushes.add(bucket, EVERY, NOW, urgent=True)
    assert [(bucket, group) for _, bucket, group in complete_order(flushes)] == [
        (b, g) for b in (7, 8, 9) for g in range(4)
    ]


def test_a_group_that_failed_waits_and_delays_no_other() -> None:
    flushes = schedule()
    flushes.add(7, EVERY, NOW, urgent=True)
    flushes.add(8, EVERY, NOW, urgent=True)
    assert flushes.failed(2, NOW) == 10
    order = complete_order(flushes)
    assert [group for _, _, group in order] == [0, 1, 3, 0, 1, 3, 2, 2]
    assert order[-2:] == [(NOW + 10, 7, 2), (NOW, 8, 2)], "a success ends the wait"


def test_a_group_that_failed_before_its_time_still_waits_for_its_time() -> None:
    flushes = schedule()
    flushes.add(7, frozenset({3}), NOW, urgent=False)
    flushes.failed(3, NOW)
    assert flushes.next_due() == (NOW + 600, 7, 3)


def test_each_failure_in_a_row_doubles_the_wait_and_a_success_ends_the_row() -> None:
    flushes = schedule()
    for bucket in (7, 8):
        flushes.add(bucket, frozenset({1}), NOW, urgent=True)
    assert [flushes.failed(1, NOW + failure) for failure in range(3)] == [10, 20, 40]
    assert flushes.next_due() == (NOW + 2 + 40, 7, 1)
    flushes.done(1)
    assert flushes.next_due() == (NOW, 8, 1)
    assert flushes.failed(1, NOW) == 10


def test_failures_of_one_group_do_not_count_for_another() -> None:
    flushes = schedule()
    flushes.add(7, EVERY, NOW, urgent=True)
    for _ in range(5):
        flushes.failed(0, NOW)
    assert flushes.failed(1, NOW) == 10


def test_in_a_hurry_all_but_failed_groups_are_due_in_the_order_of_buckets() -> None:
    flushes = schedule()
    flushes.add(7, EVERY, NOW, urgent=False)
    flushes.add(8, frozenset({0, 1}), NOW, urgent=False)
    flushes.failed(1, NOW)
    flushes.make_due(NOW)
    order = []
    while (upcoming := flushes.next_due()) is not None and upcoming[0] <= NOW:
        order.append(upcoming[1:])
        flushes.done(upcoming[2])
    assert order == [(7, 0), (7, 2), (7, 3), (8, 0)]
    assert flushes.next_due() == (NOW + 10, 7, 1)
    flushes.done(1)
    upcoming = flushes.next_due()
    assert upcoming is not None
    assert upcoming[0] <= NOW
    assert upcoming[1:] == (8, 1)


def test_with_a_bound_only_older_buckets_are_due() -> None:
    flushes = schedule()
    flushes.add(7, frozenset({0, 1}), NOW, urgent=True)
    flushes.add(8, EVERY, NOW, urgent=True)
    assert flushes.next_due(below=7) is None
    assert [(bucket, group) for _, bucket, group in complete_order(flushes, below=8)] == [(7, 0), (7, 1)]
    assert not flushes.is_stored(8)
    assert flushes.next_due(below=9) == (NOW, 8, 0)


@given(st.integers(0, 40))
def test_a_wait_doubles_up_to_its_bound(failures: int) -> None:
    backoff = Backoff(minimum=7, maximum=60_000)
    assert backoff.after(failures + 1) == min(60_000, 7 * 2**failures)


def test_a_wait_stays_bounded_after_any_number_of_failures() -> None:
    assert Backoff(minimum=1_000, maximum=60_000).after(10**9) == 60_000
    assert Backoff(minimum=5, maximum=5).after(1) == 5


ADDED = st.lists(
    st.tuples(st.frozensets(st.integers(0, 3)), st.integers(0, 1_000), st.booleans()), min_size=1, max_size=6
)


@given(ADDED, st.integers(0, 3))
def test_every_group_of_every_bucket_is_due_once_and_in_order(
    added: list[tuple[frozenset[int], int, bool]], first_group: int
) -> None:
    flushes, now, expected = schedule(first_group), NOW, set()
    for bucket, (groups, passed, urgent) in enumerate(added):
        now += passed
        flushes.add(bucket, groups, now, urgent=urgent)
        expected |= {(bucket, group) for group in groups}
    order = complete_order(flushes)
    assert {(bucket, group) for _, bucket, group in order} == expected
    assert len(order) == len(expected)
    assert all(due < now + SPREAD for due, _, _ in order), "a bucket is stored within the spread"
    for group in range(4):
        of_group = [bucket for _, bucket, other in order if other == group]
        assert of_group == sorted(of_group)


def test_groups_due_at_one_time_are_returned_together_unless_an_older_bucket_or_a_failure_delays_them() -> None:
    flushes = schedule()
    flushes.add(7, frozenset({0}), NOW, urgent=True)
    flushes.add(8, EVERY, NOW, urgent=True)
    flushes.failed(2, NOW)
    assert flushes.due_of(8, NOW) == [1, 3], "0 has an older bucket, and 2 has failed"
    assert flushes.due_of(7, NOW) == [0]
    flushes.done(0)
    assert flushes.due_of(8, NOW + 10) == [0, 1, 2, 3]
    assert flushes.due_of(9, NOW + 10) == []


def test_spread_groups_are_not_due_before_their_time() -> None:
    flushes = schedule()
    flushes.add(7, EVERY, NOW, urgent=False)
    assert flushes.due_of(7, NOW) == [0]
    assert flushes.due_of(7, NOW + SPREAD // 2) == [0, 1, 2]
