"""Where a partition's log begins and ends, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where a log begins and ends: the first offset that is there, the one behind the last record that committed
    readers may see, and the one behind the last record of all.
    """

    start: int
    last_stable: int
    high: int
