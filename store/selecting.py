"""Which series a reader wants."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows, U64s
from strandline.store.kernels.order import fill_wanted_mask
from strandline.store.series_run import SeriesKey, SeriesKeys

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WantedSeries(SeriesKeys):
    """Series in rising order of (metric, key_high, key_low), each once."""

    def key(self, place: int) -> SeriesKey:
        """One of them; counted from the end if `place` is negative."""
        return SeriesKey(int(self.metric[place]), int(self.key_high[place]), int(self.key_low[place]))

    def of_group(self, group: int, groups: int) -> "WantedSeries":
        """Those of one group of so many."""
        return self.take(np.flatnonzero(self.metric % np.uint64(groups) == group))

    def by_group(self, groups: int) -> dict[int, "WantedSeries"]:
        """Those of each of so many groups that has any."""
        numbers = np.unique(self.metric % np.uint64(groups)).tolist()
        if len(numbers) == 1:
            return {numbers[0]: self}
        return {number: self.of_group(number, groups) for number in numbers}

    def take(self, places: Rows) -> "WantedSeries":
        """Those at some places, which rise."""
        return WantedSeries(self.metric[places], self.key_high[places], self.key_low[places])

    @classmethod
    def of(cls, keys: Iterable[SeriesKey]) -> "WantedSeries":
        """These keys, given in any order."""
        rows = [(key.metric, key.key_high, key.key_low) for key in sorted(set(keys))]
        columns = np.array(rows, dtype=np.uint64).reshape(-1, 3).T.copy()
        return cls(*columns)

    def wanted_mask(self, metric: U64s, key_high: U64s, key_low: U64s) -> Mask:
        """Which of some series, a segment's for instance, are among these."""
        mask = np.empty(len(metric), dtype=np.bool_)
        fill_wanted_mask(metric, key_high, key_low, self.metric, self.key_high, self.key_low, mask)
        return mask
