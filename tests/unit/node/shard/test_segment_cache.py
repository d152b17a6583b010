"""Segments that are read repeatedly."""

from collections.abc import Iterator

import pytest

from strandline.node.shard.segment_cache import SegmentCache, SegmentCacheFigures
from strandline.store.rows import GroupRow, Segment, SegmentsOf, ShardId

pytestmark = pytest.mark.unit

KEYS = (b"b", b"d", b"d", b"f", b"h")


class CountedStore:
    """Has segments of this many bytes each, and counts its calls."""

    def __init__(self, size: int = 10) -> None:
        self.size, self.calls = size, 0

    def segments(
        self, _where: SegmentsOf, *, first: bytes | None = None, last: bytes | None = None
    ) -> Iterator[Segment]:
        """Like `Store.segments`."""
        self.calls += 1
        segments = [Segment(key, seq, bytes(self.size)) for seq, key in enumerate(KEYS)]
        if first is None or last is None:
            return iter(segments)
        below = [segment for segment in segments if segment.first < first][-1:]
        return iter(below + [segment for segment in segments if first <= segment.first <= last])


def where(bucket: int) -> SegmentsOf:
    return SegmentsOf(ShardId("d", 0), bucket, 0, "a")


def row(bucket: int, samples: int = 1) -> GroupRow:
    return GroupRow(bucket, 0, "a", 1, 1, samples, 0, 1, b"", 1, 9, 9, "n", 0)


def read_row(cache: SegmentCache, store: CountedStore, bucket: int, *, samples: int = 1) -> list[Segment]:
    return list(cache.segments(store, where(bucket), row(bucket, samples), b"a", b"z"))  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [b"a", b"b", b"c", b"d", b"e", b"h", b"i"])
@pytest.mark.parametrize("last", [b"a", b"b", b"d", b"e", b"h", b"z"])
def test_a_cached_row_is_equal_to_the_stores(first: bytes, last: bytes) -> None:
    if last < first:
        first, last = last, first
    store, cache = CountedStore(), SegmentCache(1000)
    for _ in range(2):
        read_row(cache, store, 0)
    before = store.calls
    cached = list(cache.segments(store, where(0), row(0), first, last))  # type: ignore[arg-type]
    assert store.calls == before
    assert cached == list(store.segments(where(0), first=first, last=last))


def test_a_row_is_cached_when_it_is_read_again() -> None:
    store, cache = CountedStore(), SegmentCache(1000)
    for _ in range(5):
        assert len(read_row(cache, store, 0)) == len(KEYS)
    assert store.calls == 2


def test_the_most_recently_read_rows_are_cached() -> None:
    store, cache = CountedStore(size=10), SegmentCache(120)
    for bucket in (0, 0, 1, 1, 0, 2, 2):
        read_row(cache, store, bucket)
    before = store.calls
    read_row(cache, store, 0)
    read_row(cache, store, 2)
    assert store.calls == before
    read_row(cache, store, 1)
    assert store.calls == before + 1


def test_figures_count_hits_and_bytes() -> None:
    store, cache = CountedStore(size=10), SegmentCache(120)
    for bucket in (0, 0, 0, 0, 1):
        read_row(cache, store, bucket)
    assert cache.figures() == SegmentCacheFigures(bytes=50, hits=2, misses=3)
    for bucket in (1, 2, 2):
        read_row(cache, store, bucket)
    # Three rows exceed its size.
    assert cache.figures().bytes == 100


@pytest.mark.parametrize("samples", [0, 1])
def test_a_cache_of_zero_bytes_stores_nothing(samples: int) -> None:
    store, cache = CountedStore(size=0), SegmentCache(0)
    for _ in range(4):
        read_row(cache, store, 0, samples=samples)
    assert store.calls == 4
    assert cache.figures() == SegmentCacheFigures(misses=4)


def test_a_row_that_would_fill_the_cache_is_read_from_the_store_each_time() -> None:
    store, cache = CountedStore(), SegmentCache(1000)
    for _ in range(4):
        read_row(cache, store, 0, samples=126)
    assert store.calls == 4
