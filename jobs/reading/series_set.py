"""Series as columns: their labels, hashes, and the shards that may have their samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows, U32s, U64s
from strandline.index.kernels.gather import gather_runs
from strandline.index.kernels.key_order import order_by_labels
from strandline.jobs.reading.kernels.labels import put_metric_first

Bytes = npt.NDArray[np.uint8]
# The bytes that are added to a key without a metric.
_NO_METRIC = 12


@dataclass(frozen=True, slots=True)
class LabelBytes:
    """Part keys with the metric first: key i is `data[offsets[i]:offsets[i + 1]]`. It begins with `__name__` and the
    metric, which may be empty; the other labels follow, sorted by name.
    """

    offsets: I64s
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of_part_keys(cls, offsets: I64s, data: Bytes) -> "LabelBytes":
        """From part keys as in an index bucket."""
        count = len(offsets) - 1
        out = np.empty(int(offsets[-1] - offsets[0]) + _NO_METRIC * count, dtype=np.uint8)
        ends = np.zeros(count + 1, dtype=np.int64)
        put_metric_first(data, offsets, out, ends)
        return cls(ends, out[: ends[-1]].copy())

    def take(self, indices: Rows) -> "LabelBytes":
        """The keys at these indices, in their order."""
        starts, ends = self.offsets[indices], self.offsets[indices + 1]
        offsets = np.zeros(len(indices) + 1, dtype=np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        gather_runs(self.data, starts, ends, data)
        return LabelBytes(offsets, data)

    def order(self) -> Rows:
        """The indices that sort the keys by metric and labels."""
        order = np.empty(len(self), dtype=np.int64)
        order_by_labels(self.data, self.offsets[:-1], self.offsets[1:], order)
        return order

    @staticmethod
    def concatenated(parts: Sequence["LabelBytes"]) -> "LabelBytes":
        """The concatenation."""
        lengths = np.concatenate([np.empty(0, dtype=np.int64), *(np.diff(part.offsets) for part in parts)])
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return LabelBytes(offsets, np.concatenate([np.empty(0, dtype=np.uint8), *(part.data for part in parts)]))


@dataclass(frozen=True, slots=True)
class SeriesSet:
    """Distinct series. Series i may have samples in the shards `shard_sets[shards[i]]`, from `start[i]` to `end[i]`."""

    labels: LabelBytes
    metric: U64s
    key_high: U64s
    key_low: U64s
    start: I64s
    end: I64s
    shards: U32s
    shard_sets: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.metric)

    def take(self, indices: Rows) -> "SeriesSet":
        """The series at these indices, in their order."""
        return SeriesSet(
            self.labels.take(indices),
            self.metric[indices],
            self.key_high[indices],
            self.key_low[indices],
            self.start[indices],
            self.end[indices],
            self.shards[indices],
            self.shard_sets,
        )

    def part(self, first: int, stop: int) -> "SeriesSet":
        """The series from index `first` to `stop` (exclusive)."""
        return self.take(np.arange(first, stop))

    def within(self, first: int, last: int) -> "SeriesSet":
        """The series that may have samples in a time range; both ends are inclusive."""
        return self.take(np.flatnonzero((self.start <= last) & (self.end >= first)))

    def by_labels(self) -> "SeriesSet":
        """The series, sorted by metric and labels."""
        return self.take(self.labels.order())
