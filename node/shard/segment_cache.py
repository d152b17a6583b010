"""A cache of stored segments that queries have read recently.

Dashboards repeatedly query the same hours. Fetching segments from the store costs more than decoding them, much more
for few series. The segments of a group never change under one attempt, so there is no invalidation.
"""

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from strandline.store.protocol import Store
from strandline.store.rows import GroupRow, Segment, SegmentsOf

# A row may use at most 1/4 of the cache, so that one large read does not evict everything else.
_MAX_ROW_SHARE = 4
# The estimated size of a stored sample.
_BYTES_PER_SAMPLE = 2
# How many rows that were read once are remembered.
_MAX_READ_ONCE = 4096


@dataclass(frozen=True, slots=True)
class SegmentCacheFigures:
    """The size of the cached segments in bytes, and the numbers of cache hits and misses, counted by row."""

    bytes: int = 0
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True)
class _CachedRow:
    segments: tuple[Segment, ...]
    firsts: tuple[bytes, ...]
    size: int

    def between(self, first: bytes, last: bytes) -> tuple[Segment, ...]:
        """The segments that `Store.segments` returns for this range."""
        return self.segments[max(0, bisect_left(self.firsts, first) - 1) : bisect_right(self.firsts, last)]


class SegmentCache:
    """Caches the segments of complete manifest rows that were read more than once, least recently used evicted first.
    Disabled if `max_bytes` is 0. Thread-safe.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._rows: OrderedDict[SegmentsOf, _CachedRow] = OrderedDict()
        self._read_once: OrderedDict[SegmentsOf, None] = OrderedDict()
        self._size = self._hits = self._misses = 0

    def figures(self) -> SegmentCacheFigures:
        """The current figures. Does not wait for reads."""
        with self._lock:
            return SegmentCacheFigures(self._size, self._hits, self._misses)

    def segments(self, store: Store, where: SegmentsOf, row: GroupRow, first: bytes, last: bytes) -> Iterator[Segment]:
        """The segments, in order, that may contain series from `first` to `last`, both included."""
        with self._lock:
            cached = self._rows.get(where)
            if cached is not None:
                self._hits += 1
                self._rows.move_to_end(where)
            else:
                self._misses += 1
                if not self._should_cache(where, row):
                    return store.segments(where, first=first, last=last)
        if cached is None:
            cached = self._load(store, where)
        return iter(cached.between(first, last))

    def _should_cache(self, where: SegmentsOf, row: GroupRow) -> bool:
        if not self._max_bytes or _BYTES_PER_SAMPLE * row.samples > self._max_bytes // _MAX_ROW_SHARE:
            return False
        is_second = where in self._read_once
        self._read_once[where] = None
        self._read_once.move_to_end(where)
        if len(self._read_once) > _MAX_READ_ONCE:
            self._read_once.popitem(last=False)
        return is_second

    def _load(self, store: Store, where: SegmentsOf) -> _CachedRow:
        segments = tuple(store.segments(where))
        size = sum(len(one.data) for one in segments)
        cached = _CachedRow(segments, tuple(one.first for one in segments), size)
        with self._lock:
            if where not in self._rows:
                self._rows[where] = cached
                self._size += size
            while self._size > self._max_bytes:
                _, dropped = self._rows.popitem(last=False)
                self._size -= dropped.size
        return cached
