"""Samples of many series as one sorted run: the output of the write buffer and the content of segments."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s, I64s, U64s


@dataclass(frozen=True, slots=True)
class SeriesRun:
    """Series in ascending order of (metric, key_high, key_low), without duplicates: the order of all segments.

    Series i has the samples `[first_sample[i], first_sample[i + 1])` of the sample columns: at least one, with strictly
    ascending times. Values are kept bit for bit, because a NaN may be a staleness marker.
    """

    metric: U64s
    key_high: U64s
    key_low: U64s
    first_sample: I64s
    time: I64s
    value: F64s

    def __len__(self) -> int:
        return len(self.metric)

    @property
    def samples(self) -> int:
        """The total number of samples."""
        return len(self.time)

    @classmethod
    def empty(cls) -> "SeriesRun":
        """A run without series."""
        hashes = np.empty(0, dtype=np.uint64)
        times = np.empty(0, dtype=np.int64)
        return cls(hashes, hashes, hashes, np.zeros(1, dtype=np.int64), times, np.empty(0, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class SeriesKeys:
    """Keys of series as columns, in any order."""

    metric: U64s
    key_high: U64s
    key_low: U64s

    def __len__(self) -> int:
        return len(self.metric)


@dataclass(frozen=True, slots=True, order=True)
class SeriesKey:
    """The key of a series, which orders runs and segments."""

    metric: int
    key_high: int
    key_low: int

    def to_bytes(self) -> bytes:
        """Return 24 bytes with the same order as the keys."""
        return b"".join(word.to_bytes(8, "big") for word in (self.metric, self.key_high, self.key_low))

    @classmethod
    def from_bytes(cls, data: bytes) -> "SeriesKey":
        """The inverse of `to_bytes`."""
        words: Sequence[int] = [int.from_bytes(data[at : at + 8], "big") for at in (0, 8, 16)]
        return cls(*words)
