"""Caches the group of each series of a shard, for the most recently used groupings of aggregations.

Entries stay valid because a part id is never given to another key. Without the cache, an aggregation over many series
would fetch every key from Lucene each time.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows, U32s
from strandline.index.documents import PartKeyBatch
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.promql.labels import GroupTable

_UNKNOWN = -1
# Dashboards group by a few sets of labels. A grouping takes four bytes per part id.
_MAX_GROUPINGS = 16
GroupingKey = tuple[object, ...]


@dataclass(slots=True)
class _Grouping:
    table: GroupTable
    number_of: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class SeriesGroups:
    """The group of each series, and the labels of the groups; `_UNKNOWN` for a series whose key was purged."""

    group_of: Rows
    keys: KeyBytes


class GroupNumbers:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groupings: OrderedDict[GroupingKey, _Grouping] = OrderedDict()

    def of(
        self,
        key: GroupingKey,
        new_table: Callable[[], GroupTable],
        part_ids: U32s,
        keys_of: Callable[[U32s], PartKeyBatch],
    ) -> SeriesGroups:
        """The groups of these series by the grouping that `key` identifies. `keys_of` fetches keys of unknown
        series.
        """
        with self._lock:
            grouping = self._groupings.get(key)
            if grouping is None:
                grouping = self._groupings[key] = _Grouping(new_table())
            self._groupings.move_to_end(key)
            while len(self._groupings) > _MAX_GROUPINGS:
                self._groupings.popitem(last=False)
        with grouping.lock:
            numbers = self._numbers(grouping, part_ids, keys_of)
            keys = grouping.table.keys
        return _only_used(numbers, keys)

    @staticmethod
    def _numbers(grouping: _Grouping, part_ids: U32s, keys_of: Callable[[U32s], PartKeyBatch]) -> Rows:
        ids = part_ids.astype(np.int64)
        needed = int(ids.max(initial=-1)) + 1
        if needed > len(grouping.number_of):
            larger = np.full(max(needed, len(grouping.number_of) * 9 // 8), _UNKNOWN, dtype=np.int32)
            larger[: len(grouping.number_of)] = grouping.number_of
            grouping.number_of = larger
        unknown = np.flatnonzero(grouping.number_of[ids] == _UNKNOWN)
        if len(unknown):
            batch = keys_of(np.sort(part_ids[unknown]))
            found = grouping.table.add(KeyBytes(batch.offsets.astype(np.int64), batch.keys))
            grouping.number_of[batch.part_ids.astype(np.int64)] = found
        numbers: Rows = grouping.number_of[ids].astype(np.int64)
        return numbers


def _only_used(numbers: Rows, keys: KeyBytes) -> SeriesGroups:
    """Only the groups with at least one of the series, renumbered in the order in which they first appeared."""
    is_used = np.zeros(len(keys), dtype=np.bool_)
    known = numbers[numbers >= 0]
    is_used[known] = True
    used = np.flatnonzero(is_used)
    if len(used) == len(keys):
        return SeriesGroups(numbers, keys)
    renumbered = np.cumsum(is_used) - 1
    return SeriesGroups(np.where(numbers >= 0, renumbered[numbers], _UNKNOWN), take_keys(keys, used))
