"""The series that a reader selects."""

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
    """Series in ascending order of (metric, key_high, key_low), without duplicates."""

    def key(self, index: int) -> SeriesKey:
        """Return the key at an index; negative indices count from the end."""
        return SeriesKey(int(self.metric[index]), int(self.key_high[index]), int(self.key_low[index]))

    def of_group(self, group: int, groups: int) -> "WantedSeries":
        """Return the series of one of `groups` groups."""
        return self.take(np.flatnonzero(self.metric % np.uint64(groups) == group))

    def by_group(self, groups: int) -> dict[int, "WantedSeries"]:
        """Return the series of each of `groups` groups that has any."""
        numbers = np.unique(self.metric % np.uint64(groups)).tolist()
        if len(numbers) == 1:
            return {numbers[0]: self}
        return {number: self.of_group(number, groups) for number in numbers}

    def take(self, indices: Rows) -> "WantedSeries":
        """Return the series at ascending indices."""
        return WantedSeries(self.metric[indices], self.key_high[indices], self.key_low[indices])

    @classmethod
    def of(cls, keys: Iterable[SeriesKey]) -> "WantedSeries":
        """Make the selection from keys in any order."""
        rows = [(key.metric, key.key_high, key.key_low) for key in sorted(set(keys))]
        columns = np.array(rows, dtype=np.uint64).reshape(-1, 3).T.copy()
        return cls(*columns)

    def wanted_mask(self, metric: U64s, key_high: U64s, key_low: U64s) -> Mask:
        """Return a mask of the given series, for instance those of a segment, that are among these."""
        mask = np.empty(len(metric), dtype=np.bool_)
        fill_wanted_mask(metric, key_high, key_low, self.metric, self.key_high, self.key_low, mask)
        return mask
