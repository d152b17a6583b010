"""Lists of all labels, and of all values of one, as they were sent last: kept as long as the shards say they hold."""

from collections import OrderedDict
from dataclasses import dataclass

from strandline.node.http.whole import Whole
from strandline.node.query.edition import Edition

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


class KeptLists:
    """Lists of one edition. It belongs to one event loop."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._edition: tuple[int, ...] = ()
        self._lists: OrderedDict[ListKey, Whole] = OrderedDict()
        self._size = 0

    def get(self, edition: Edition, key: ListKey) -> Whole | None:
        """The list, if it was kept and is of this edition."""
        self._move_on(edition)
        found = self._lists.get(key)
        if found is not None:
            self._lists.move_to_end(key)
        return found

    def keep(self, edition: Edition, key: ListKey, whole: Whole) -> None:
        """Keep a list, and let go of those that were not asked for the longest."""
        self._move_on(edition)
        size = _size(key, whole)
        if size > min(_LONGEST, self._most) or key in self._lists:
            return
        self._lists[key] = whole
        self._size += size
        while self._size > self._most:
            self._size -= _size(*self._lists.popitem(last=False))

    def _move_on(self, edition: Edition) -> None:
        if edition.numbers != self._edition:
            self._edition = edition.numbers
            self._lists.clear()
            self._size = 0


def _size(key: ListKey, whole: Whole) -> int:
    return len(whole.body) + 4 * len(key.label or "") + _OVERHEAD
