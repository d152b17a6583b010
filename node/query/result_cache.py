"""Results of fragments that a shard keeps for the next time, and what each of them was made of."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from pyroaring import BitMap

from strandline.node.shard.pinned_content import PinnedContent
from strandline.node.shard.report import ResultCacheFigures
from strandline.promql.evaluation.partial_steps import bytes_of
from strandline.promql.evaluation.partials import Partial
from strandline.promql.values import Grid

DEFAULT_BYTES = 64 << 20
# One result takes at most such a part of the cache: it should not push out those of a whole dashboard.
_LARGEST_PART = 4
# What a row of the manifest, a series, and the rest of an entry take, about.
_ROW_BYTES, _SERIES_BYTES, _ENTRY_BYTES = 320, 2, 2_000


@dataclass(frozen=True, slots=True)
class CachedResult:
    """The result of a fragment at the windows' ends `ends`, over these series and this content. Nobody changes it."""

    ends: Grid
    partial: Partial
    series: BitMap
    content: PinnedContent

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        rows = _ROW_BYTES * (len(self.content.rows) + len(self.content.buffers))
        return _ENTRY_BYTES + rows + _SERIES_BYTES * len(self.series) + bytes_of(self.partial)


class ResultCache:
    """The latest results within a number of bytes; with 0 it is off. Any thread may ask."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, tuple[CachedResult, int]] = OrderedDict()
        self._size = 0
        self._hits = self._partial_hits = self._misses = 0

    @property
    def is_on(self) -> bool:
        """Whether anything is kept."""
        return self._most > 0

    def find(self, key: bytes) -> CachedResult | None:
        """What was kept under a key."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: bytes, result: CachedResult) -> None:
        """Keep a result in the place of the one before, unless it is too large."""
        size = result.size + len(key)
        with self._lock:
            self._drop(key)
            if size > self._most // _LARGEST_PART:
                return
            self._kept[key] = (result, size)
            self._size += size
            while self._size > self._most:
                self._drop(next(iter(self._kept)))

    def count(self, kept: int, steps: int) -> None:
        """A fragment was evaluated, and of its steps so many were kept."""
        with self._lock:
            self._hits += kept == steps
            self._partial_hits += 0 < kept < steps
            self._misses += not kept

    def clear(self) -> None:
        """Keep nothing of what there is."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def figures(self) -> ResultCacheFigures:
        """What came of it so far."""
        with self._lock:
            return ResultCacheFigures(self._hits, self._partial_hits, self._misses, self._size)

    def _drop(self, key: bytes) -> None:
        _, size = self._kept.pop(key, (None, 0))
        self._size -= size
