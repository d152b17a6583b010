"""The series of a bucket: number -> key, in order of first appearance."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, U32s
from strandline.store.buffer.kernels.series_order import find_numbers, order_by_group
from strandline.store.buffer.value_search import MAX_SCANNED_VALUES, positions_of_any
from strandline.store.series_run import SeriesKeys

MAX_SERIES = 0xFFFF_FFFF  # The next number, REFUSED, marks refused rows.
MAX_GROUPS = 1 << 16
_MIN_CAPACITY = 1024
_GROWTH = 1.25
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class GroupOrder:
    """Series ordered by (group, number): the position of each number, the number at each position, and the first
    position of each group.
    """

    position: I64s
    number: U32s
    group_first: I64s


@dataclass(frozen=True, slots=True)
class KnownSeries:
    """The series of one moment. `group` is the metric modulo the number of groups, `in_group` the number of series per
    group.
    """

    keys: SeriesKeys
    group: npt.NDArray[np.uint16]
    in_group: I64s

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.in_group)

    def __len__(self) -> int:
        return len(self.keys)

    def by_group(self) -> GroupOrder:
        """Return the order in which rows are sealed."""
        position, number = np.empty(len(self), dtype=np.int64), np.empty(len(self), dtype=np.uint32)
        group_first = np.empty(self.groups + 1, dtype=np.int64)
        order_by_group(self.group, position, number, group_first)
        return GroupOrder(position, number, group_first)

    def of_group(self, group: int) -> U32s:
        """Return the numbers of one group's series, in ascending order."""
        return np.flatnonzero(self.group == group).astype(np.uint32)

    def find(self, wanted: SeriesKeys) -> U32s:
        """Return the numbers of the wanted keys that exist, in ascending order without duplicates."""
        if len(wanted) <= MAX_SCANNED_VALUES:
            return self._find_by_scan(wanted)
        slots = np.full(1 << (2 * len(wanted)).bit_length(), -1, dtype=np.int64)
        numbers = np.empty(len(self), dtype=np.uint32)
        mine = self.keys
        found = find_numbers(
            mine.metric,
            mine.key_high,
            mine.key_low,
            wanted.metric,
            wanted.key_high,
            wanted.key_low,
            slots,
            numbers,
        )
        return numbers[:found].copy()

    def _find_by_scan(self, wanted: SeriesKeys) -> U32s:
        """The same, by comparing each key with each wanted one."""
        mine = self.keys
        at = positions_of_any(mine.key_low, wanted.key_low)
        # Few keys share half of their hash with a wanted key.
        is_same = (
            (mine.key_low[at, None] == wanted.key_low)
            & (mine.key_high[at, None] == wanted.key_high)
            & (mine.metric[at, None] == wanted.metric)
        )
        numbers: U32s = at[is_same.any(axis=1)].astype(np.uint32)
        return numbers

    def sorted_by_key(self, numbers: U32s) -> U32s:
        """Return these numbers in the order of their keys."""
        keys = self.keys
        order = np.lexsort((keys.key_low[numbers], keys.key_high[numbers], keys.metric[numbers]))
        return numbers[order]


class Dictionary:
    """The growing list of series. One thread defines series; the results of `known` never change."""

    def __init__(self, groups: int) -> None:
        if not 0 < groups <= MAX_GROUPS:
            raise ValueError(f"the number of groups must be 1 to {MAX_GROUPS}, not {groups}")
        self._groups = groups
        self._used = 0
        self._metric, self._key_high, self._key_low = (np.empty(0, dtype=np.uint64) for _ in range(3))
        self._group = np.empty(0, dtype=np.uint16)
        self._in_group = np.zeros(groups, dtype=np.int64)

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        """The memory of the columns."""
        return sum(column.nbytes for column in (self._metric, self._key_high, self._key_low, self._group))

    def define(self, keys: SeriesKeys) -> None:
        """Give these keys the next numbers."""
        stop = self._used + len(keys)
        if stop > MAX_SERIES:
            raise ValueError(f"a bucket can have at most {MAX_SERIES} series, not {stop}")
        if stop > len(self._metric):
            self._grow(max(stop, _MIN_CAPACITY, int(len(self._metric) * _GROWTH)))
        part = slice(self._used, stop)
        self._metric[part] = keys.metric
        self._key_high[part] = keys.key_high
        self._key_low[part] = keys.key_low
        self._group[part] = keys.metric % np.uint64(self._groups)
        # A new array, because snapshots may hold the old one.
        self._in_group = self._in_group + np.bincount(self._group[part], minlength=self._groups)
        self._used = stop

    def known(self) -> KnownSeries:
        """The series defined so far."""
        used = self._used
        keys = SeriesKeys(self._metric[:used], self._key_high[:used], self._key_low[:used])
        return KnownSeries(keys, self._group[:used], self._in_group)

    def _grow(self, series: int) -> None:
        """Copy into larger columns; snapshots keep the old ones."""
        used = self._used
        self._metric, self._key_high, self._key_low = (
            _copied(column[:used], series) for column in (self._metric, self._key_high, self._key_low)
        )
        self._group = _copied(self._group[:used], series)


def _copied(column: npt.NDArray[_Number], length: int) -> npt.NDArray[_Number]:
    """Return a longer column that begins with this one."""
    longer = np.empty(length, dtype=column.dtype)
    longer[: len(column)] = column
    return longer
