"""Series that have samples in segments and no key in the index: what is lost with an index bucket that can't be read.

Segments tell series apart by the hashes of their keys alone. So what is lost can be counted and dated, though only the
bucket knew its labels. A series whose key is met again, in a later record, is found by queries that reach up to that.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from strandline.arrays import I64s, U32s, U64s
from strandline.index.key_table import MISSING, KeyTable
from strandline.recovery.periods import utc_text

Find = Callable[[U64s, U64s], U32s]
_SALVAGED = ".salvaged-"


@dataclass(frozen=True, slots=True)
class SegmentSeries:
    """Series of segments as columns: the hash of each key, how many samples there are, and times between which they
    lie.
    """

    key_low: U64s
    key_high: U64s
    samples: I64s
    least: I64s
    greatest: I64s


@dataclass(frozen=True, slots=True)
class Unnamed:
    """How many series have no key, how many samples they have, and between which times; None if there are none."""

    series: int
    samples: int
    least_time: int | None
    greatest_time: int | None

    def __str__(self) -> str:
        if self.least_time is None or self.greatest_time is None:
            return "no series"
        return (
            f"{self.series:,} series with {self.samples:,} sample{'s' * (self.samples != 1)} between"
            f" {utc_text(self.least_time)} and {utc_text(self.greatest_time)}"
        )


class UnnamedSeries:
    """Counts series without a key over any number of segments. A series counts once, wherever it has samples."""

    def __init__(self, find: Find) -> None:
        """`find` tells where the index has each of some keys, by the low and the high word of its hash, `MISSING` for
        those that it does not have.
        """
        self._find = find
        self._met = KeyTable()
        self._samples = 0
        self._least: int | None = None
        self._greatest: int | None = None

    def take(self, series: SegmentSeries) -> None:
        """Some series; those of another segment may be the same ones."""
        unnamed = np.flatnonzero(self._find(series.key_low, series.key_high) == MISSING)
        if len(unnamed) == 0:
            return
        low, high = series.key_low[unnamed], series.key_high[unnamed]
        self._met.assign(low, high, next_row=len(self._met), max_keys=MISSING)
        self._samples += int(series.samples[unnamed].sum())
        least, greatest = int(series.least[unnamed].min()), int(series.greatest[unnamed].max())
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = greatest if self._greatest is None else max(self._greatest, greatest)

    def counted(self) -> Unnamed:
        """All that has come so far."""
        return Unnamed(len(self._met), self._samples, self._least, self._greatest)


def salvage_attempt(prefix: str, bucket: int) -> str:
    """The attempt under which what is left of a damaged index bucket is stored, once its loss was accepted."""
    return f"{prefix}{_SALVAGED}{bucket}"


def is_salvaged(attempt: str, bucket: int) -> bool:
    """Whether an index bucket is what was left of a damaged one."""
    return attempt.endswith(f"{_SALVAGED}{bucket}")
