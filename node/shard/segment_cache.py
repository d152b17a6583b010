"""Segments that queries have read lately, as they are stored.

Dashboards ask for the same hours again and again. What was read from the store costs more to fetch than to decode, for
a few series by far. Under one attempt the segments of a group never change, so that nothing has to be invalidated.
"""

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from strandline.store.protocol import Store
from strandline.store.rows import GroupRow, Segment, SegmentsOf

# A row takes at most such a part of the cache: one large read should not push out everything else.
_MAX_ROW_SHARE = 4
# What a stored sample takes, about, before it is known.
_BYTES_PER_SAMPLE = 2
# How many rows that were read once are remembered.
_MAX_READ_ONCE = 4096


@dataclass(frozen=True, slots=True)
class SegmentCacheFigures:
    """Bytes of the segments that are cached, and how many reads of a row found it cached or went to the store."""

    bytes: int = 0
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True)
class _CachedRow:
    segments: tuple[Segment, ...]
    firsts: tuple[bytes, ...]
    size: int

    def between(self, first: bytes, last: bytes) -> tuple[Segment, ...]:
        """What `Store.segments` gives for such a range."""
        return self.segments[max(0, bisect_left(self.firsts, first) - 1) : bisect_right(self.firsts, last)]


class SegmentCache:
    """Holds whole rows of the manifest that were read more than once, the latest ones, up to so many bytes; none at 0.
    Any thread may ask.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._rows: OrderedDict[SegmentsOf, _CachedRow] = OrderedDict()
        self._read_once: OrderedDict[SegmentsOf, None] = OrderedDict()
        self._size = self._hits = self._misses = 0

    def figures(self) -> SegmentCacheFigures:
        """What it holds now, and what it has been asked for since it was made. Waits for no read."""
        with self._lock:
            return SegmentCacheFigures(self._size, self._hits, self._misses)

    def segments(self, store: Store, where: SegmentsOf, row: GroupRow, first: bytes, last: bytes) -> Iterator[Segment]:
        """Segments in order that may hold series from `first` to `last`, both included."""
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
