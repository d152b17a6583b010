"""Collects the keys of a bucket from its records without an index: it numbers and summarises them, and keeps their
bytes.

This serves replays by workers, and shards that read ahead of their own replay: the index includes those records later,
by the summary.
"""

from dataclasses import dataclass, field

import numpy as np

from strandline.arrays import I64s, Rows, U32s
from strandline.index.kernels.summing import widen
from strandline.index.key_summary import KeySummary, PartKeyBytes
from strandline.index.new_keys import part_key_bytes
from strandline.index.numbering import BucketNumbering
from strandline.index.part_columns import ABSENT, LIVE
from strandline.wire.columns import Columns


@dataclass(slots=True)
class _GrowableSummary:
    """Columns of keys with spare capacity for appending."""

    used: int = 0
    summary: KeySummary = field(default_factory=KeySummary.empty)

    def append(self, rows: KeySummary) -> None:
        stop = self.used + len(rows)
        if stop > len(self.summary):
            self.summary = self.summary.grown_to(max(stop, 1024, len(self.summary) * 5 // 4))
        self.summary.put(self.used, rows)
        self.used = stop


class BucketKeys:
    """The keys of one bucket. For one thread."""

    def __init__(self) -> None:
        self.numbering = BucketNumbering()
        self._columns = _GrowableSummary()
        self._bytes: list[PartKeyBytes] = []

    def __len__(self) -> int:
        return self._columns.used

    def take(self, batch: Columns, offsets: I64s) -> tuple[U32s, Rows]:
        """Add a decoded batch, whose records have these offsets. Return the number of each series row, `MISSING` if it
        has no sample, and the rows that got new numbers, in order.
        """
        numbers, new = self.numbering.take(batch)
        if len(new):
            self._bytes.append(part_key_bytes(batch, new))
            self._columns.append(_new_summary(batch, new, offsets))
        columns = self._columns.summary
        widen(numbers, batch.first_sample, batch.time, columns.least, columns.greatest)
        return numbers, new

    def summary(self) -> KeySummary:
        """The summary of each key, by its number. The next batch changes it."""
        return self._columns.summary.part(0, self._columns.used)

    def part_keys(self) -> PartKeyBytes:
        """The bytes of each key, by its number."""
        if len(self._bytes) > 1:
            self._bytes = [PartKeyBytes.concatenated(self._bytes)]
        return self._bytes[0] if self._bytes else PartKeyBytes.concatenated([])


def _new_summary(batch: Columns, rows: Rows, offsets: I64s) -> KeySummary:
    record = batch.record[rows]
    # Rows are in the order of records, so the first row of a record is found by its number.
    position = rows - np.searchsorted(batch.record, record)
    return KeySummary(
        batch.metric[rows],
        batch.key_high[rows],
        batch.key_low[rows],
        np.full(len(rows), LIVE),
        np.full(len(rows), ABSENT),
        offsets[record],
        position,
    )
