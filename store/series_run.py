"""Samples of many series as one sorted run: what the write buffer gives, and what segments hold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s, I64s, U64s


@dataclass(frozen=True, slots=True)
class SeriesRun:
    """Series in rising order of (metric, key_high, key_low), each once; the order that segments have everywhere.

    Series i has the samples `first_sample[i]` up to, not including, `first_sample[i + 1]` of the sample columns, at
    least one, in rising order of their times, no time twice. The bits of a value are kept as they are: a NaN may be a
    staleness marker.
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
        """How many samples all of them have."""
        return len(self.time)

    @classmethod
    def empty(cls) -> "SeriesRun":
        """No series at all."""
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
    """One series, as runs and segments order them."""

    metric: int
    key_high: int
    key_low: int

    def to_bytes(self) -> bytes:
        """24 bytes that compare as the keys do."""
        return b"".join(word.to_bytes(8, "big") for word in (self.metric, self.key_high, self.key_low))

    @classmethod
    def from_bytes(cls, data: bytes) -> "SeriesKey":
        """The key that `to_bytes` gave these bytes for."""
        words: Sequence[int] = [int.from_bytes(data[at : at + 8], "big") for at in (0, 8, 16)]
        return cls(*words)
