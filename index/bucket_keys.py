"""The keys of a bucket as its records are read, without an index: numbered, summed up, and their bytes kept.

So does a replay that runs elsewhere, and a shard that reads ahead of its own replay: what they have read counts for the
index later, by the summary.
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
    """Columns of keys that are appended to, with room at their ends."""

    used: int = 0
    summary: KeySummary = field(default_factory=KeySummary.empty)

    def append(self, rows: KeySummary) -> None:
        behind = self.used + len(rows)
        if behind > len(self.summary):
            self.summary = self.summary.grown_to(max(behind, 1024, len(self.summary) * 5 // 4))
        self.summary.put(self.used, rows)
        self.used = behind


class BucketKeys:
    """The keys of one bucket. One thread calls it."""

    def __init__(self) -> None:
        self.numbering = BucketNumbering()
        self._columns = _GrowableSummary()
        self._bytes: list[PartKeyBytes] = []

    def __len__(self) -> int:
        return self._columns.used

    def take(self, batch: Columns, offsets: I64s) -> tuple[U32s, Rows]:
        """Let a decoded batch count, whose records have these offsets. The number of each series row, `MISSING` where
        it has no sample, and the rows that got new ones in order.
        """
        numbers, new = self.numbering.take(batch)
        if len(new):
            self._bytes.append(part_key_bytes(batch, new))
            self._columns.append(_new_summary(batch, new, offsets))
        columns = self._columns.summary
        widen(numbers, batch.first_sample, batch.time, columns.least, columns.greatest)
        return numbers, new

    def summary(self) -> KeySummary:
        """What there is to say of each key, by its number. It changes with the next batch."""
        return self._columns.summary.part(0, self._columns.used)

    def part_keys(self) -> PartKeyBytes:
        """The bytes of each key, by its number."""
        if len(self._bytes) > 1:
            self._bytes = [PartKeyBytes.concatenated(self._bytes)]
        return self._bytes[0] if self._bytes else PartKeyBytes.concatenated([])


def _new_summary(batch: Columns, rows: Rows, offsets: I64s) -> KeySummary:
    record = batch.record[rows]
    # Rows stand in the order of records, so the first of a record is found by its number.
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
