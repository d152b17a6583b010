"""From one moment to another."""

from dataclasses import dataclass
from typing import Final

EARLIEST: Final = -(2**63)
LATEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `first` to `last`, both included, in milliseconds."""

    first: int = EARLIEST
    last: int = LATEST


ALL_TIMES: Final = TimeRange()
