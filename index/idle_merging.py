"""Merging at rest: an index that gets few new keys is brought down to few segments.

A check-up goes through every segment, and what it reads of each is mostly in no processor's cache. Lucene itself keeps a
dozen of them and more, so that much can be added at little cost; it does not know when that is over. Here it is over
when hardly a key in a thousand came since the last check, some seconds before. Merging again and again what then still
comes would cost more than it brings, so there is a pause between two merges.

A merge that fails for want of disk would close the index. So it is not begun unless there is room for much more than
it can take.
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from strandline.clock import Clock

_LOG = structlog.get_logger(__name__)

TARGET_SEGMENTS = 4
"""Segments that a merge leaves; one that is larger than Lucene makes them stands beside these."""
MERGE_ABOVE_SEGMENTS = 8
"""Segments that are not worth a merge."""
CHECK_INTERVAL_S = 5.0
MIN_MERGE_INTERVAL_S = 600.0
_MAX_IDLE_ADDITIONS = 0.001


class Mergeable(Protocol):
    """An index in segments: a `PartKeyIndex`."""

    @property
    def additions(self) -> int: ...

    def count(self) -> int: ...

    def segments(self) -> int: ...

    def is_current(self) -> bool: ...

    def refresh(self) -> None: ...

    def merge(self, max_segments: int) -> None: ...


class IdleMerger:
    """Looks at one index now and then, for its writer, who calls it in its loop."""

    def __init__(self, index: Mergeable, clock: Clock, has_disk_space: Callable[[], bool]) -> None:
        """`has_disk_space` tells whether the disk has room for a second index of this size, and more."""
        self._index, self._clock, self._has_disk_space = index, clock, has_disk_space
        self._known: int | None = None
        self._check_at = self._merge_at = float("-inf")
        # How many segments there were when a merge began that searches have not seen the end of.
        self._segments_before_merge: int | None = None

    def check(self) -> None:
        """Begin to merge if it is time for that. It costs next to nothing but every few seconds."""
        now, index = self._clock.monotonic(), self._index
        if now < self._check_at:
            return
        self._check_at = now + CHECK_INTERVAL_S
        segments = self._segments()
        known, self._known = self._known, index.additions
        is_idle = known is not None and self._known - known <= _MAX_IDLE_ADDITIONS * index.count()
        if is_idle and now >= self._merge_at and segments > MERGE_ABOVE_SEGMENTS:
            self._merge_at = now + MIN_MERGE_INTERVAL_S
            if not self._has_disk_space():
                _LOG.warning("the index is not merged: the disk has too little room", segments=segments)
                return
            _LOG.info("the index is at rest, and is merged", segments=segments, into=TARGET_SEGMENTS)
            self._segments_before_merge = segments
            index.merge(TARGET_SEGMENTS)

    def _segments(self) -> int:
        """How many there are. Searches are told of a merge here: it ends at any time, and nobody else does."""
        index = self._index
        if self._segments_before_merge is not None and not index.is_current():
            index.refresh()
        segments = index.segments()
        if self._segments_before_merge is not None and segments < self._segments_before_merge:
            self._segments_before_merge = None
        return segments
