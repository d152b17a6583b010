"""Compares sent samples with samples that were read back, by columns. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import Bools, I64s, Rows, U64s


@dataclass(frozen=True, slots=True)
class KeyedSamples:
    """Samples, each with the key hash of its series. Values are bits, so that NaNs can be compared."""

    low: U64s
    high: U64s
    time: I64s
    bits: U64s

    def __len__(self) -> int:
        return len(self.time)

    def take(self, rows: Rows | Bools) -> "KeyedSamples":
        """A subset."""
        return KeyedSamples(self.low[rows], self.high[rows], self.time[rows], self.bits[rows])

    @classmethod
    def joined(cls, some: Sequence["KeyedSamples"]) -> "KeyedSamples":
        """The concatenation."""
        if not some:
            nothing = np.empty(0, dtype=np.uint64)
            return cls(nothing, nothing, np.empty(0, dtype=np.int64), nothing)
        columns = (np.concatenate([getattr(one, name) for one in some]) for name in ("low", "high", "time", "bits"))
        return cls(*columns)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of the sent samples that are missing, and of those with a different value, with the bits found."""

    missing: Rows
    different: Rows
    found_bits: U64s


def last_of_each(samples: KeyedSamples) -> KeyedSamples:
    """One sample for each series and time: the last one, which wins."""
    order = np.lexsort((samples.time, samples.high, samples.low))
    kept = samples.take(order)
    is_last = np.ones(len(kept), dtype=np.bool_)
    is_last[:-1] = ~_same(kept)
    return kept.take(is_last)


def compare(sent: KeyedSamples, found: KeyedSamples) -> Comparison:
    """Find the sent samples, whose series and times must be distinct. Other found samples are ignored."""
    both = KeyedSamples.joined((sent, found))
    is_found = np.arange(len(both)) >= len(sent)
    order = np.lexsort((is_found, both.time, both.high, both.low))
    first = np.flatnonzero(_same(both.take(order)) & ~is_found[order][:-1])
    rows, theirs = order[first], order[first + 1]
    is_missing = np.ones(len(sent), dtype=np.bool_)
    is_missing[rows] = False
    differs = both.bits[rows] != both.bits[theirs]
    return Comparison(np.flatnonzero(is_missing), rows[differs], both.bits[theirs[differs]])


def _same(samples: KeyedSamples) -> Bools:
    """For each sample but the last: whether the next one has the same series and time."""
    same: Bools = (
        (samples.low[1:] == samples.low[:-1])
        & (samples.high[1:] == samples.high[:-1])
        & (samples.time[1:] == samples.time[:-1])
    )
    return same
