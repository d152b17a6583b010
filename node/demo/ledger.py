"""Records acknowledged samples, and compares them with samples that are read back. Pure functions over columns."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import F64s, I64s, U64s
from strandline.wire.columns import Columns
from strandline.wire.decode import Limits, decode_batch


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples as columns, in any order: the hash of the series' labels as two words, the time, and the value."""

    key_high: U64s
    key_low: U64s
    time: I64s
    value: F64s

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def of(cls, columns: Columns) -> "Samples":
        """All samples of a decoded batch."""
        counts = np.diff(columns.first_sample)
        high, low = np.repeat(columns.key_high, counts), np.repeat(columns.key_low, counts)
        return cls(high, low, columns.time.copy(), columns.value.copy())

    @classmethod
    def concatenate(cls, parts: "list[Samples]") -> "Samples":
        """All samples of several parts."""
        if not parts:
            words = np.empty(0, dtype=np.uint64)
            return cls(words, words, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
        return cls(
            np.concatenate([part.key_high for part in parts]),
            np.concatenate([part.key_low for part in parts]),
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.value for part in parts]),
        )

    def sorted(self) -> "Samples":
        """Sorted by (series, time). The sort is stable."""
        order = np.lexsort((self.time, self.key_low, self.key_high))
        return Samples(self.key_high[order], self.key_low[order], self.time[order], self.value[order])


@dataclass(frozen=True, slots=True)
class Comparison:
    """Counts of samples from comparing the acknowledged with the found ones.

    `lost`: acknowledged, but not found. `doubled`: found more than once. `wrong`: found with another value. `foreign`:
    found, but never sent.
    """

    acknowledged: int
    found: int
    lost: int
    doubled: int
    wrong: int
    foreign: int

    @property
    def is_exact(self) -> bool:
        """Whether exactly the acknowledged samples were found, each once and with its value."""
        return (self.lost, self.doubled, self.wrong, self.foreign) == (0, 0, 0, 0)


def compare(acknowledged: Samples, found: Samples) -> Comparison:
    """Compare sample by sample. A sample that was acknowledged twice, after a retry, counts once."""
    expected, actual = acknowledged.sorted(), found.sorted()
    # Of equal samples, the last one is the latest.
    expected = _select(expected, ~_equals_next(expected))
    doubled = _equals_next(actual)
    once = _select(actual, ~doubled)
    both = Samples.concatenate([expected, once])
    order = np.lexsort((both.time, both.key_low, both.key_high))
    merged = Samples(both.key_high[order], both.key_low[order], both.time[order], both.value[order])
    matched = np.flatnonzero(_equals_next(merged))
    bits = merged.value.view(np.uint64)
    return Comparison(
        acknowledged=len(expected),
        found=len(actual),
        lost=len(expected) - len(matched),
        doubled=int(doubled.sum()),
        wrong=int((bits[matched] != bits[matched + 1]).sum()),
        foreign=len(once) - len(matched),
    )


class Ledger:
    """The samples of all acknowledged requests."""

    def __init__(self) -> None:
        self._parts: list[Samples] = []

    def add(self, body: bytes) -> int:
        """Add the samples of a request that was answered with 2xx. Returns their number."""
        part = Samples.of(decode_batch([body], Limits()))
        self._parts.append(part)
        return len(part)

    def samples(self) -> Samples:
        """All samples, in the order of acknowledgement."""
        return Samples.concatenate(self._parts)


def _equals_next(samples: Samples) -> npt.NDArray[np.bool_]:
    """Whether each of the sorted samples has the same series and time as the next one."""
    same = np.zeros(len(samples), dtype=np.bool_)
    if len(samples) > 1:
        same[:-1] = (
            (samples.key_high[1:] == samples.key_high[:-1])
            & (samples.key_low[1:] == samples.key_low[:-1])
            & (samples.time[1:] == samples.time[:-1])
        )
    return same


def _select(samples: Samples, chosen: npt.NDArray[np.bool_]) -> Samples:
    return Samples(samples.key_high[chosen], samples.key_low[chosen], samples.time[chosen], samples.value[chosen])
