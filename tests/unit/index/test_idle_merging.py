"""When the segments of an index are merged, with an index that only counts calls, and with a real one."""

import pytest
from pyroaring import BitMap

from strandline.clock import ManualClock, SystemClock, wait_until
from strandline.index.idle_merging import (
    CHECK_INTERVAL_S,
    MERGE_ABOVE_SEGMENTS,
    MIN_MERGE_INTERVAL_S,
    TARGET_SEGMENTS,
    IdleMerger,
)
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import everything
from support.lookup_keys import add_keys

pytestmark = pytest.mark.unit

KEYS = 10_000


class CountingIndex:
    """An index that counts calls."""

    def __init__(self) -> None:
        self.additions, self.parts, self.current = KEYS, MERGE_ABOVE_SEGMENTS + 1, True
        self.merges: list[int] = []
        self.refreshes = 0
        self.room = True

    def has_disk_space(self) -> bool:
        return self.room

    def count(self) -> int:
        return KEYS

    def segments(self) -> int:
        return self.parts

    def is_current(self) -> bool:
        return self.current

    def refresh(self) -> None:
        self.refreshes += 1

    def merge(self, most: int) -> None:
        self.merges.append(most)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def counted() -> CountingIndex:
    return CountingIndex()


def check(merging: IdleMerger, clock: ManualClock, times: int = 1) -> None:
    for _ in range(times):
        clock.sleep(CHECK_INTERVAL_S)
        merging.check()


def test_an_index_at_rest_is_merged(counted: CountingIndex, clock: ManualClock) -> None:
    merging = IdleMerger(counted, clock, counted.has_disk_space)
    merging.check()
    clock.sleep(CHECK_INTERVAL_S - 0.1)
    merging.check()
    assert counted.merges == []
    clock.sleep(0.1)
    merging.check()
    assert counted.merges == [TARGET_SEGMENTS]


def test_one_that_grows_by_more_than_a_key_in_a_thousand_is_not(counted: CountingIndex, clock: ManualClock) -> None:
    merging = IdleMerger(counted, clock, counted.has_disk_space)
    for _ in range(100):
        counted.additions += KEYS // 1000 + 1
        check(merging, clock)
    assert counted.merges == []
    counted.additions += KEYS // 1000
    check(merging, clock)
    assert counted.merges == [TARGET_SEGMENTS]


def test_an_index_with_few_segments_is_not_merged(counted: CountingIndex, clock: ManualClock) -> None:
    counted.parts = MERGE_ABOVE_SEGMENTS
    merging = IdleMerger(counted, clock, counted.has_disk_space)
    check(merging, clock, 10)
    assert counted.merges == []
    counted.parts += 1
    check(merging, clock)
    assert counted.merges == [TARGET_SEGMENTS]


def test_there_is_a_pause_between_two_merges(counted: CountingIndex, clock: ManualClock) -> None:
    merging = IdleMerger(counted, clock, counted.has_disk_space)
    check(merging, clock, 1 + round(MIN_MERGE_INTERVAL_S / CHECK_INTERVAL_S))
    assert counted.merges == [TARGET_SEGMENTS]
    check(merging, clock)
    assert counted.merges == [TARGET_SEGMENTS, TARGET_SEGMENTS]


def test_only_a_merge_causes_a_refresh(counted: CountingIndex, clock: ManualClock) -> None:
    merging = IdleMerger(counted, clock, counted.has_disk_space)
    counted.current = False
    check(merging, clock)
    assert counted.refreshes == 0, "the refreshing of new keys has its own bound"
    check(merging, clock, 3)
    assert counted.merges == [TARGET_SEGMENTS]
    assert counted.refreshes == 2, "it has not ended yet"
    counted.parts = MERGE_ABOVE_SEGMENTS
    check(merging, clock)
    assert counted.refreshes == 3
    check(merging, clock, 3)
    assert counted.refreshes == 3


def test_without_disk_space_nothing_is_merged(counted: CountingIndex, clock: ManualClock) -> None:
    """Lucene closes an index whose merge has failed."""
    counted.room = False
    merging = IdleMerger(counted, clock, counted.has_disk_space)
    check(merging, clock, round(MIN_MERGE_INTERVAL_S / CHECK_INTERVAL_S))
    assert counted.merges == []
    counted.room = True
    check(merging, clock, 2)
    assert counted.merges == [TARGET_SEGMENTS]


def test_a_real_index_has_few_segments_in_the_end_and_the_same_keys(index: PartKeyIndex, clock: ManualClock) -> None:
    # With one more than ten Lucene would merge by itself.
    for number in range(MERGE_ABOVE_SEGMENTS + 1):
        add_keys(index, {10 * number + key: {"n": str(number), "one": str(key)} for key in range(10)})
    assert index.segments() == MERGE_ABOVE_SEGMENTS + 1
    index.delete(BitMap([3, 25]))
    index.refresh()
    kept = BitMap(range(10 * (MERGE_ABOVE_SEGMENTS + 1))) - BitMap([3, 25])
    merging = IdleMerger(index, clock, lambda: True)
    check(merging, clock)
    add_keys(index, {1000: {"n": "new"}, 1001: {"n": "newer"}})
    check(merging, clock)
    assert index.segments() == MERGE_ABOVE_SEGMENTS + 2
    # A merge would only have begun by now.
    assert merging._segments_before_merge is None, "two of a hundred are many"
    kept |= BitMap([1000, 1001])

    def is_merged() -> bool:
        check(merging, clock)
        return index.segments() <= TARGET_SEGMENTS

    assert wait_until(is_merged, timeout=60, clock=SystemClock(), poll=0.01)
    assert index.search(everything()) == kept
    assert index.is_current()


def test_an_index_may_be_closed_while_it_is_merged(index: PartKeyIndex) -> None:
    for number in range(MERGE_ABOVE_SEGMENTS + 2):
        add_keys(index, {100 * number + key: {"n": str(number), "one": str(key)} for key in range(100)})
    index.merge(1)
    index.close()
