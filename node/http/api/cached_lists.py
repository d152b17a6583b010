"""Caches the responses with all label names, and with all values of a label, for as long as the index version lasts."""

from collections import OrderedDict
from dataclasses import dataclass

from strandline.node.http.responses import Response
from strandline.node.query.index_version import IndexVersion

# Bytes of all lists, and of one list.
_MAX_BYTES = 32 << 20
_MAX_LIST_BYTES = 4 << 20
# The approximate size of a list besides its body.
_OVERHEAD = 1 << 10


@dataclass(frozen=True, slots=True)
class ListKey:
    """A list: the values of `label`, or the label names if it is None; with a limit, and compressed or not."""

    label: str | None
    limit: int
    gzip: bool


class CachedLists:
    """An LRU cache of the lists of one index version. For one event loop."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._version: tuple[int, ...] = ()
        self._lists: OrderedDict[ListKey, Response] = OrderedDict()
        self._size = 0

    def get(self, version: IndexVersion, key: ListKey) -> Response | None:
        """The cached list of this version; None if there is none."""
        self._follow_version(version)
        found = self._lists.get(key)
        if found is not None:
            self._lists.move_to_end(key)
        return found

    def add(self, version: IndexVersion, key: ListKey, response: Response) -> None:
        """Cache a list, and evict the least recently used ones."""
        self._follow_version(version)
        size = _size(key, response)
        if size > min(_MAX_LIST_BYTES, self._max_bytes) or key in self._lists:
            return
        self._lists[key] = response
        self._size += size
        while self._size > self._max_bytes:
            self._size -= _size(*self._lists.popitem(last=False))

    def _follow_version(self, version: IndexVersion) -> None:
        if version.numbers != self._version:
            self._version = version.numbers
            self._lists.clear()
            self._size = 0


def _size(key: ListKey, response: Response) -> int:
    return len(response.body) + 4 * len(key.label or "") + _OVERHEAD
