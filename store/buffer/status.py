"""What a buffer holds, as numbers for metrics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BufferStatus:
    """As of one moment. `samples` counts those of pages and rows, of which some may yet turn out to be replaced;
    `replaced` those that were dropped because a later one had their series and time.
    """

    bucket: int
    series: int
    rows: int
    samples: int
    replaced: int
    pages: int
    memory_bytes: int
    spilled_bytes: int
