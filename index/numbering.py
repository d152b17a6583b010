"""Numbers the series of a bucket whose keys the index already has, because the bucket is below the index's checkpoint.

For such buckets the stored index bucket is authoritative. Records only supply samples, and must not change keys or
bitmaps.
"""

from dataclasses import dataclass, field

import numpy as np

from strandline.arrays import Rows, U32s, run_lengths
from strandline.index.key_table import MISSING, KeyTable
from strandline.wire.columns import Columns


@dataclass(slots=True)
class BucketNumbering:
    """The numbers of one bucket's series, in order of their first samples."""

    _table: KeyTable = field(default_factory=KeyTable)

    def take(self, batch: Columns) -> tuple[U32s, Rows]:
        """Return the number of each series row, `MISSING` if it has no sample, and the rows that got new numbers, in
        order.
        """
        numbers = np.full(len(batch.record), MISSING, dtype=np.uint32)
        given = np.flatnonzero(run_lengths(batch.first_sample))
        assigned = self._table.assign(
            batch.key_low[given], batch.key_high[given], next_row=len(self._table), max_keys=MISSING
        )
        numbers[given] = assigned.rows
        return numbers, given[assigned.new]
