"""The series of a task in the order of (group, metric, key), divided by units and groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows
from strandline.recovery.replay.replay_input import SeriesBound
from strandline.recovery.replay.units import positions_of_bounds
from strandline.store.series_run import SeriesKeys


@dataclass(frozen=True, slots=True)
class OrderedPart:
    """The series at positions from `first` up to, but not including, `end`: those of one group and one unit of the
    job.
    """

    unit: int
    group: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class UnitOrder:
    """The position of each series number, the number at each position, the first position of each unit, and the parts
    in order.
    """

    place: I64s
    number: Rows
    unit_first: Sequence[int]
    parts: Sequence[OrderedPart]

    def numbers_by_unit(self) -> Iterator[Rows]:
        """The numbers of each unit's series in ascending order, which is the order in which a task met them."""
        for unit, first in enumerate(self.unit_first):
            end = self.unit_first[unit + 1] if unit + 1 < len(self.unit_first) else len(self.number)
            yield np.sort(self.number[first:end])


def unit_order(keys: SeriesKeys, group: npt.NDArray[np.uint16], bounds: Sequence[SeriesBound]) -> UnitOrder:
    """Sort numbered series."""
    number = np.lexsort((keys.key_low, keys.key_high, keys.metric, group))
    place = np.empty(len(number), dtype=np.int64)
    place[number] = np.arange(len(number))
    groups = group[number].astype(np.uint64)
    unit_first = [
        0,
        *positions_of_bounds(bounds, groups, keys.metric[number], keys.key_high[number], keys.key_low[number]),
    ]
    starts = set(unit_first) | set(np.flatnonzero(np.diff(groups, prepend=np.uint64(1 << 63))).tolist())
    edges = [*sorted(starts - {len(number)}), len(number)]
    parts = []
    for at, first in enumerate(edges[:-1]):
        unit = int(np.searchsorted(unit_first, first, side="right")) - 1
        parts.append(OrderedPart(unit, int(groups[first]), first, edges[at + 1]))
    return UnitOrder(place, number, unit_first, parts)
