"""Lists of all labels, and of all values of one, as they were sent last: kept as long as the shards say they hold."""

from collections import OrderedDict
from dataclasses import dataclass

from strandline.node.http.responses import Response
from strandline.node.query.index_version import IndexVersion

# In bytes, of all lists and of one.
_MOST = 32 << 20
_LONGEST = 4 << 20
# About what a list takes beside its body.
_OVERHEAD = 1 << 10


@dataclass(frozen=True, slots=True)
class ListKey:
    """A list: the values of a label, or without one the names of labels; so many of them, for some clients packed."""

    label: str | None
    limit: int
    gzip: bool


class CachedLists:
    """Lists of one version of the index. It belongs to one event loop."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._version: tuple[int, ...] = ()
        self._lists: OrderedDict[ListKey, Response] = OrderedDict()
        self._size = 0

    def get(self, version: IndexVersion, key: ListKey) -> Response | None:
        """The list, if it was kept and is of this version."""
        self._move_on(version)
        found = self._lists.get(key)
        if found is not None:
            self._lists.move_to_end(key)
        return found

    def keep(self, version: IndexVersion, key: ListKey, response: Response) -> None:
        """Keep a list, and let go of those that were not asked for the longest."""
        self._move_on(version)
        size = _size(key, response)
        if size > min(_LONGEST, self._most) or key in self._lists:
            return
        self._lists[key] = response
        self._size += size
        while self._size > self._most:
            self._size -= _size(*self._lists.popitem(last=False))

    def _move_on(self, version: IndexVersion) -> None:
        if version.numbers != self._version:
            self._version = version.numbers
            self._lists.clear()
            self._size = 0


def _size(key: ListKey, response: Response) -> int:
    return len(response.body) + 4 * len(key.label or "") + _OVERHEAD
