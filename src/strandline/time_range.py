"""Ranges of time in milliseconds."""

from dataclasses import dataclass
from typing import Final

EARLIEST: Final = -(2**63)
LATEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `first` to `last` inclusive, in milliseconds since the epoch."""

    first: int = EARLIEST
    last: int = LATEST


ALL_TIMES: Final = TimeRange()


def overlap_fraction(times: TimeRange, of: TimeRange) -> float:
    """Which fraction of the range `of` lies within `times`, from 0 to 1."""
    overlap = min(times.last, of.last) - max(times.first, of.first) + 1
    return max(0.0, overlap / (of.last - of.first + 1))
