"""Series that have samples in segments but no key in the index: what was lost with an unreadable index bucket.

Segments identify series only by the hashes of their keys, so lost series can be counted and dated although their labels
are unknown. If a later record contains the key of a series again, queries that include that record's time find it.
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
    """Series of segments as columns: key hashes, numbers of samples, and a time range that contains the samples."""

    key_low: U64s
    key_high: U64s
    samples: I64s
    least: I64s
    greatest: I64s


@dataclass(frozen=True, slots=True)
class KeylessSeries:
    """How many series have no key, how many samples they have, and in which time range; None if there are none."""

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


class KeylessSeriesCounter:
    """Counts the series without a key in any number of segments. Each series counts once, however many segments contain
    it.
    """

    def __init__(self, find: Find) -> None:
        """`find` returns the index's row of each key, given the low and high words of the keys' hashes; `MISSING` for
        unknown keys.
        """
        self._find = find
        self._table = KeyTable()
        self._samples = 0
        self._least: int | None = None
        self._greatest: int | None = None

    def take(self, series: SegmentSeries) -> None:
        """Add the series of a segment; other segments may have the same series."""
        unnamed = np.flatnonzero(self._find(series.key_low, series.key_high) == MISSING)
        if len(unnamed) == 0:
            return
        low, high = series.key_low[unnamed], series.key_high[unnamed]
        self._table.assign(low, high, next_row=len(self._table), max_keys=MISSING)
        self._samples += int(series.samples[unnamed].sum())
        least, greatest = int(series.least[unnamed].min()), int(series.greatest[unnamed].max())
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = greatest if self._greatest is None else max(self._greatest, greatest)

    def counted(self) -> KeylessSeries:
        """The result over all series added so far."""
        return KeylessSeries(len(self._table), self._samples, self._least, self._greatest)


def salvage_attempt(prefix: str, bucket: int) -> str:
    """The attempt under which the remains of a damaged index bucket are stored after its loss was accepted."""
    return f"{prefix}{_SALVAGED}{bucket}"


def is_salvaged(attempt: str, bucket: int) -> bool:
    """Whether an index bucket consists of the remains of a damaged one."""
    return attempt.endswith(f"{_SALVAGED}{bucket}")
