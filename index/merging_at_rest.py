"""Merging at rest: an index that gets few new keys is brought down to few segments.

A look-up goes through every segment, and what it reads of each is mostly in no processor's cache. Lucene itself keeps a
dozen of them and more, so that much can be added at little cost; it does not know when that is over. Here it is over
when hardly a key in a hundred came since the last look. Merging again and again what then still comes would cost more
than it brings, so there is a pause between two merges.
"""

from typing import Protocol

from strandline.clock import Clock

FEW = 4
"""Segments that a merge leaves, at the most."""
MANY = 8
"""Segments that are not worth a merge."""
LOOK_S = 5.0
PAUSE_S = 600.0
_CALM = 0.01


class Mergeable(Protocol):
    """An index in segments: a `PartKeyIndex`."""

    @property
    def additions(self) -> int: ...

    def count(self) -> int: ...

    def segments(self) -> int: ...

    def is_current(self) -> bool: ...

    def refresh(self) -> None: ...

    def merge(self, most: int) -> None: ...


class MergingAtRest:
    """Looks at one index now and then, for its writer, who calls it in its loop."""

    def __init__(self, index: Mergeable, clock: Clock) -> None:
        """What is in the index by now is not new."""
        self._index, self._clock = index, clock
        self._known = index.additions
        self._look_at = clock.monotonic() + LOOK_S
        self._merge_not_before = float("-inf")

    def look(self) -> None:
        """Begin to merge if it is time for that. It costs next to nothing but every few seconds."""
        now, index = self._clock.monotonic(), self._index
        if now < self._look_at:
            return
        self._look_at = now + LOOK_S
        if not index.is_current():
            # Merges end at any time, and nobody else tells searches of them.
            index.refresh()
        known, self._known = self._known, index.additions
        if now < self._merge_not_before or self._known - known > _CALM * index.count() or index.segments() <= MANY:
            return
        self._merge_not_before = now + PAUSE_S
        index.merge(FEW)
