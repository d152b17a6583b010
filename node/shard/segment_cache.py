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
_LARGEST_PART = 4
# What a stored sample takes, about, before it is known.
_BYTES_A_SAMPLE = 2
# How many rows that were read once are remembered.
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class SegmentCacheFigures:
    """Bytes of the segments that are held, and how many reads of a row found it held or went to the store."""

    bytes: int = 0
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True)
class _Held:
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

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[SegmentsOf, _Held] = OrderedDict()
        self._read_once: OrderedDict[SegmentsOf, None] = OrderedDict()
        self._size = self._hits = self._misses = 0

    def figures(self) -> SegmentCacheFigures:
        """What it holds now, and what it has been asked for since it was made. Waits for no read."""
        with self._lock:
            return SegmentCacheFigures(self._size, self._hits, self._misses)

    def segments(self, store: Store, where: SegmentsOf, row: GroupRow, first: bytes, last: bytes) -> Iterator[Segment]:
        """Segments in order that may hold series from `first` to `last`, both included."""
        with self._lock:
            held = self._held.get(where)
            if held is not None:
                self._hits += 1
                self._held.move_to_end(where)
            else:
                self._misses += 1
                if not self._is_worth_it(where, row):
                    return store.segments(where, first=first, last=last)
        if held is None:
            held = self._loaded(store, where)
        return iter(held.between(first, last))

    def _is_worth_it(self, where: SegmentsOf, row: GroupRow) -> bool:
        if not self._most or _BYTES_A_SAMPLE * row.samples > self._most // _LARGEST_PART:
            return False
        is_second = where in self._read_once
        self._read_once[where] = None
        self._read_once.move_to_end(where)
        if len(self._read_once) > _REMEMBERED:
            self._read_once.popitem(last=False)
        return is_second

    def _loaded(self, store: Store, where: SegmentsOf) -> _Held:
        segments = tuple(store.segments(where))
        size = sum(len(one.data) for one in segments)
        held = _Held(segments, tuple(one.first for one in segments), size)
        with self._lock:
            if where not in self._held:
                self._held[where] = held
                self._size += size
            while self._size > self._most:
                _, dropped = self._held.popitem(last=False)
                self._size -= dropped.size
        return held
