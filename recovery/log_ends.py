"""The ends of a partition's log, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The first offset that exists, the offset after the last record that committed readers may see (last stable
    offset), and the offset after the last record (high watermark).
    """

    start: int
    last_stable: int
    high: int
