"""Series that a selector has found, as columns: their labels, hashes, and the shards that may hold their samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows, U32s, U64s
from strandline.index.kernels.gather import gather_runs
from strandline.index.kernels.key_order import order_by_labels
from strandline.jobs.reading.kernels.labels import put_metric_first

Bytes = npt.NDArray[np.uint8]
# What a key without a metric gains when one is put in front of it.
_NO_METRIC = 12


@dataclass(frozen=True, slots=True)
class LabelBytes:
    """Part keys with the metric first: key i is `data[offsets[i]:offsets[i + 1]]`. It begins with `__name__` and the
    metric, which may be empty; the other labels follow in the order of their names.
    """

    offsets: I64s
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of_part_keys(cls, offsets: I64s, data: Bytes) -> "LabelBytes":
        """Part keys as an index bucket holds them."""
        count = len(offsets) - 1
        out = np.empty(int(offsets[-1] - offsets[0]) + _NO_METRIC * count, dtype=np.uint8)
        ends = np.zeros(count + 1, dtype=np.int64)
        put_metric_first(data, offsets, out, ends)
        return cls(ends, out[: ends[-1]].copy())

    def take(self, places: Rows) -> "LabelBytes":
        """Those at these places, in their order."""
        starts, ends = self.offsets[places], self.offsets[places + 1]
        offsets = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        gather_runs(self.data, starts, ends, data)
        return LabelBytes(offsets, data)

    def order(self) -> Rows:
        """Their places in the order of metric and labels."""
        order = np.empty(len(self), dtype=np.int64)
        order_by_labels(self.data, self.offsets[:-1], self.offsets[1:], order)
        return order

    @staticmethod
    def concatenated(parts: Sequence["LabelBytes"]) -> "LabelBytes":
        """Several, one behind the other."""
        lengths = np.concatenate([np.empty(0, dtype=np.int64), *(np.diff(part.offsets) for part in parts)])
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return LabelBytes(offsets, np.concatenate([np.empty(0, dtype=np.uint8), *(part.data for part in parts)]))


@dataclass(frozen=True, slots=True)
class SeriesSet:
    """Series, each once. Series i may have samples in the shards `shard_sets[shards[i]]` and from `start[i]` to
    `end[i]`.
    """

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

    def take(self, places: Rows) -> "SeriesSet":
        """Those at these places, in their order."""
        return SeriesSet(
            self.labels.take(places),
            self.metric[places],
            self.key_high[places],
            self.key_low[places],
            self.start[places],
            self.end[places],
            self.shards[places],
            self.shard_sets,
        )

    def part(self, first: int, behind: int) -> "SeriesSet":
        """Those at places from `first` up to, not including, `behind`."""
        return self.take(np.arange(first, behind))

    def within(self, first: int, last: int) -> "SeriesSet":
        """Those that may have samples from one time to another, both included."""
        return self.take(np.flatnonzero((self.start <= last) & (self.end >= first)))

    def by_labels(self) -> "SeriesSet":
        """In the order of metric and labels."""
        return self.take(self.labels.order())
