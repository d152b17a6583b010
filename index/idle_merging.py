"""Merges the segments of an index that gets few new keys.

A lookup visits every segment, and what it reads of each is usually not in a CPU cache. Lucene itself keeps a dozen
segments or more, so that additions stay cheap; it does not know when additions have stopped. Here they count as stopped
if at most one key in a thousand was added since the last check, some seconds before. Repeated merges for the few keys
that still arrive would cost more than they gain, so there is a minimum interval between merges.

A merge that fails because the disk is full would close the index. So a merge is only started if there is much more free
space than it can take.
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from strandline.clock import Clock

_LOG = structlog.get_logger(__name__)

TARGET_SEGMENTS = 4
"""The segments that a merge leaves; a segment above Lucene's maximum size comes in addition."""
MERGE_ABOVE_SEGMENTS = 8
"""Up to this many segments are not worth a merge."""
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
    """Checks one index at intervals, when its writer's loop calls it."""

    def __init__(self, index: Mergeable, clock: Clock, has_disk_space: Callable[[], bool]) -> None:
        """`has_disk_space` returns whether the disk has space for a second index of this size, and more."""
        self._index, self._clock, self._has_disk_space = index, clock, has_disk_space
        self._known: int | None = None
        self._check_at = self._merge_at = float("-inf")
        # The number of segments at the start of a merge whose result searches don't see yet.
        self._segments_before_merge: int | None = None

    def check(self) -> None:
        """Start a merge if it is time. Between checks, a call costs almost nothing."""
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
                _LOG.warning("the index is not merged: not enough disk space", segments=segments)
                return
            _LOG.info("the index is idle; merging its segments", segments=segments, into=TARGET_SEGMENTS)
            self._segments_before_merge = segments
            index.merge(TARGET_SEGMENTS)

    def _segments(self) -> int:
        """Return the number of segments. This also refreshes searches after a merge, which ends at any time without a
        callback.
        """
        index = self._index
        if self._segments_before_merge is not None and not index.is_current():
            index.refresh()
        segments = index.segments()
        if self._segments_before_merge is not None and segments < self._segments_before_merge:
            self._segments_before_merge = None
        return segments
