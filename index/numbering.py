"""Numbers for the series of a bucket whose keys the index already knows as they were: those below its checkpoint.

There the stored buckets are the truth. Records only supply samples, and must change neither keys nor bitmaps.
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
        """The number of each series row, `MISSING` where it has no sample, and the rows that got new ones in order."""
        numbers = np.full(len(batch.record), MISSING, dtype=np.uint32)
        given = np.flatnonzero(run_lengths(batch.first_sample))
        assigned = self._table.assign(
            batch.key_low[given], batch.key_high[given], next_row=len(self._table), max_keys=MISSING
        )
        numbers[given] = assigned.rows
        return numbers, given[assigned.new]
