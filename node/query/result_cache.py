"""The result cache: results of fragments, and the content that each was evaluated over."""

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
# One result may take at most 1/4 of the cache, so that it does not evict the results of a whole dashboard.
_MAX_RESULT_PART = 4
# Approximate sizes in memory of a row of the manifest, of a series, and of the rest of an entry.
_ROW_BYTES, _SERIES_BYTES, _ENTRY_BYTES = 320, 2, 2_000


@dataclass(frozen=True, slots=True)
class CachedResult:
    """The result of a fragment at the window ends `ends`, over these series and this content. Read-only."""

    ends: Grid
    partial: Partial
    series: BitMap
    content: PinnedContent

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        rows = _ROW_BYTES * (len(self.content.rows) + len(self.content.buffers))
        return _ENTRY_BYTES + rows + _SERIES_BYTES * len(self.series) + bytes_of(self.partial)


class ResultCache:
    """An LRU cache of results, limited in bytes. With 0 bytes it is off. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, tuple[CachedResult, int]] = OrderedDict()
        self._size = 0
        self._hits = self._partial_hits = self._misses = 0

    @property
    def is_on(self) -> bool:
        """Whether results are cached."""
        return self._max_bytes > 0

    def get(self, key: bytes) -> CachedResult | None:
        """The cached result of a key."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: bytes, result: CachedResult) -> None:
        """Cache a result, unless it is too large. It replaces the earlier result of the key."""
        size = result.size + len(key)
        with self._lock:
            self._drop(key)
            if size > self._max_bytes // _MAX_RESULT_PART:
                return
            self._entries[key] = (result, size)
            self._size += size
            while self._size > self._max_bytes:
                self._drop(next(iter(self._entries)))

    def count(self, cached: int, steps: int) -> None:
        """Count the evaluation of a fragment with `steps` steps, of which `cached` came from the cache."""
        with self._lock:
            self._hits += cached == steps
            self._partial_hits += 0 < cached < steps
            self._misses += not cached

    def clear(self) -> None:
        """Remove all results."""
        with self._lock:
            self._entries.clear()
            self._size = 0

    def figures(self) -> ResultCacheFigures:
        """Hits, misses and size."""
        with self._lock:
            return ResultCacheFigures(self._hits, self._partial_hits, self._misses, self._size)

    def _drop(self, key: bytes) -> None:
        _, size = self._entries.pop(key, (None, 0))
        self._size -= size
