import threading

import pytest
from pyroaring import BitMap

from strandline.clock import ManualClock
from strandline.errors import Retryable
from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.failures import IndexClosed
from strandline.index.pylucene.queries import everything
from strandline.index.refreshing import BoundedRefresh, InvalidBound

pytestmark = pytest.mark.unit


class DiskFull(Retryable):
    pass


class CountingIndex:
    """Counts its refreshes. `during` is called within each, and may fail it."""

    def __init__(self) -> None:
        self.refreshes = 0
        self.during = lambda: None

    def refresh(self) -> None:
        self.refreshes += 1
        self.during()


def fail() -> None:
    raise DiskFull("no room for another segment")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def counted() -> CountingIndex:
    return CountingIndex()


def test_nothing_is_refreshed_while_nothing_changes(counted: CountingIndex, clock: ManualClock) -> None:
    refresh = BoundedRefresh(counted, clock)
    clock.sleep(100)
    assert not refresh.refresh_if_due()
    assert refresh.lag() == 0
    assert counted.refreshes == 0


def test_a_change_is_seen_once_it_has_waited_for_the_bound(counted: CountingIndex, clock: ManualClock) -> None:
    refresh = BoundedRefresh(counted, clock, bound=2)
    refresh.changed()
    clock.sleep(1.75)
    assert not refresh.refresh_if_due()
    assert counted.refreshes == 0
    clock.sleep(0.25)
    assert refresh.refresh_if_due()
    assert counted.refreshes == 1
    assert not refresh.refresh_if_due(), "it is visible now"
    assert counted.refreshes == 1


def test_the_first_of_several_changes_starts_the_clock(counted: CountingIndex, clock: ManualClock) -> None:
    refresh = BoundedRefresh(counted, clock, bound=1)
    for _ in range(4):
        refresh.changed()
        assert not refresh.refresh_if_due()
        clock.sleep(0.25)
    assert refresh.lag() == 1
    assert refresh.refresh_if_due()
    assert refresh.lag() == 0


def test_a_bound_of_zero_shows_every_change_at_the_next_call(counted: CountingIndex, clock: ManualClock) -> None:
    refresh = BoundedRefresh(counted, clock, bound=0)
    assert not refresh.refresh_if_due()
    refresh.changed()
    assert refresh.refresh_if_due()
    assert not refresh.refresh_if_due()


def test_a_refresh_that_fails_raises_and_is_tried_again(counted: CountingIndex, clock: ManualClock) -> None:
    refresh = BoundedRefresh(counted, clock)
    refresh.changed()
    clock.sleep(1)
    counted.during = fail
    for tries in (1, 2):
        with pytest.raises(DiskFull):
            refresh.refresh_if_due()
        assert counted.refreshes == tries
        assert refresh.lag() == 1, "the change is not visible yet"
    with pytest.raises(DiskFull):
        refresh.refresh_now()
    clock.sleep(1)
    refresh.changed()
    assert refresh.lag() == 2, "the oldest change counts, not the newest"
    counted.during = lambda: None
    assert refresh.refresh_if_due()
    assert refresh.lag() == 0


def test_a_change_during_a_refresh_waits_for_the_next_one(counted: CountingIndex, clock: ManualClock) -> None:
    refresh = BoundedRefresh(counted, clock)
    refresh.changed()
    clock.sleep(1)

    def change_meanwhile() -> None:
        clock.sleep(0.5)
        refresh.changed()
        assert refresh.lag() == 1.5, "its changes are not visible until the refresh is done"
        clock.sleep(0.25)

    counted.during = change_meanwhile
    assert refresh.refresh_if_due()
    counted.during = lambda: None
    assert refresh.lag() == 0.25
    clock.sleep(0.75)
    assert refresh.refresh_if_due()
    assert refresh.lag() == 0


def test_a_change_during_a_refresh_that_fails_is_no_younger_than_the_one_before(
    counted: CountingIndex, clock: ManualClock
) -> None:
    refresh = BoundedRefresh(counted, clock)
    refresh.changed()
    clock.sleep(1)

    def change_and_fail() -> None:
        refresh.changed()
        fail()

    counted.during = change_and_fail
    with pytest.raises(DiskFull):
        refresh.refresh_now()
    assert refresh.lag() == 1


def test_refreshing_now_waits_for_no_bound(counted: CountingIndex, clock: ManualClock) -> None:
    refresh = BoundedRefresh(counted, clock, bound=3600)
    refresh.changed()
    refresh.refresh_now()
    assert refresh.lag() == 0
    refresh.refresh_now()
    assert counted.refreshes == 2, "a change that the writer has not reported yet is visible as well"


class WatchedClock(ManualClock):
    """Reports when a thread of a certain name has read the clock."""

    def __init__(self, thread: str) -> None:
        super().__init__()
        self.was_read = threading.Event()
        self._thread = thread

    def monotonic(self) -> float:
        if threading.current_thread().name == self._thread:
            self.was_read.set()
        return super().monotonic()


def test_a_writer_that_waited_for_anothers_refresh_does_not_refresh_again(counted: CountingIndex) -> None:
    clock = WatchedClock("writer")
    refresh = BoundedRefresh(counted, clock)
    refresh.changed()
    clock.sleep(1)
    has_begun, may_end = threading.Event(), threading.Event()

    def wait() -> None:
        has_begun.set()
        assert may_end.wait(60)

    counted.during = wait
    other = threading.Thread(target=refresh.refresh_now)
    other.start()
    assert has_begun.wait(60)
    answers: list[bool] = []
    writer = threading.Thread(target=lambda: answers.append(refresh.refresh_if_due()), name="writer")
    writer.start()
    # By now the writer has seen a due change, which only the other thread's refresh can have made visible.
    assert clock.was_read.wait(60)
    may_end.set()
    other.join()
    writer.join()
    assert answers == [False]
    assert counted.refreshes == 1


@pytest.mark.parametrize("bound", [-1, float("nan"), float("inf")])
def test_a_bound_that_cannot_be_kept_is_refused(counted: CountingIndex, clock: ManualClock, bound: float) -> None:
    with pytest.raises(InvalidBound, match=str(bound)):
        BoundedRefresh(counted, clock, bound)


def test_keys_of_a_real_index_are_found_after_the_bound(index: PartKeyIndex, clock: ManualClock) -> None:
    refresh = BoundedRefresh(index, clock)
    index.add(PartKeyBatch.of([5], [(1, 2)], [encode_part_key({"a": "1"})]))
    refresh.changed()
    assert not refresh.refresh_if_due()
    assert index.search(everything()) == BitMap()
    clock.sleep(1)
    assert refresh.refresh_if_due()
    assert index.search(everything()) == BitMap([5])
    index.delete(BitMap([5]))
    refresh.changed()
    index.close()
    clock.sleep(1)
    with pytest.raises(IndexClosed):
        refresh.refresh_if_due()
    assert refresh.lag() == 1
