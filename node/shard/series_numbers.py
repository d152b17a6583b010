"""Numbers the series of a bucket's buffer, and updates the index, in one of three ways.

Normally, each record updates the index at once. Below the index's checkpoint, the stored index buckets are
authoritative, and records only supply samples. After a replay that is still running, records update the index once the
replay is over.
"""

from typing import Protocol

from strandline.arrays import I64s, Rows, U32s
from strandline.index.bucket_keys import BucketKeys
from strandline.index.numbering import BucketNumbering
from strandline.index.shard_index import ShardIndex
from strandline.node.shard.status import Counters
from strandline.wire.columns import Columns


class SeriesNumbers(Protocol):
    """Numbers the series of one bucket, in the order of their first samples."""

    def take(self, batch: Columns, offsets: I64s) -> tuple[U32s, Rows]:
        """Process a batch whose records have these offsets. Returns the number of each series row, `MISSING` for series
        whose samples are dropped, and the rows with new numbers, in order.
        """
        ...


class LiveNumbers:
    """Uses the numbers of the index, which refuses series over the limit."""

    def __init__(self, index: ShardIndex, counters: Counters) -> None:
        self._index, self._counters = index, counters

    def take(self, batch: Columns, offsets: I64s) -> tuple[U32s, Rows]:  # noqa: ARG002 - the protocol's
        taken = self._index.take(batch)
        self._counters.new_keys += taken.new_keys
        self._counters.refused_rows += taken.refused
        return taken.numbers, taken.newly_active


class SamplesOnly:
    """Does not update the index."""

    def __init__(self) -> None:
        self._numbering = BucketNumbering()

    def take(self, batch: Columns, offsets: I64s) -> tuple[U32s, Rows]:  # noqa: ARG002 - the protocol's
        return self._numbering.take(batch)


class TailNumbers:
    """Collects the keys separately until `join`; from then on, each batch also updates the index.

    The bucket keeps its own numbers, because the index may refuse a key whose samples are in the buffer.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._keys: BucketKeys | None = BucketKeys()
        self._numbering = self._keys.numbering
        self._index: ShardIndex | None = None

    def take(self, batch: Columns, offsets: I64s) -> tuple[U32s, Rows]:
        if self._keys is not None:
            return self._keys.take(batch, offsets)
        if self._index is not None:
            taken = self._index.take(batch)
            self._counters.new_keys += taken.new_keys
            self._counters.refused_rows += taken.refused
        return self._numbering.take(batch)

    @property
    def has_joined(self) -> bool:
        """Whether `join` was called."""
        return self._index is not None

    def join(self, index: ShardIndex) -> None:
        """Apply the collected keys to the index, whose open bucket must be this one."""
        if self._keys is None:
            raise ValueError(f"the tail has already joined the index in bucket {index.open.bucket}")
        taken = index.take_summary(self._keys.summary(), self._keys.part_keys().take)
        self._counters.new_keys += taken.new_keys
        self._counters.refused_rows += taken.refused
        self._keys, self._index = None, index
