"""Numbers for the series of a bucket's buffer, and what else its records mean: the three ways in which they are read.

Live, every record counts for the index at once. Below the index's checkpoint the stored buckets are the truth, and
records only supply samples. Past a replay that is still under way, records count for the index once that is over.
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
        """Let a batch count, whose records have these offsets. The number of each series row, `MISSING` where its
        samples are not kept, and the rows that got new ones in order.
        """
        ...


class LiveNumbers:
    """The index numbers the series, and refuses those over the limit."""

    def __init__(self, index: ShardIndex, counters: Counters) -> None:
        self._index, self._counters = index, counters

    def take(self, batch: Columns, offsets: I64s) -> tuple[U32s, Rows]:  # noqa: ARG002 - the protocol's
        taken = self._index.take(batch)
        self._counters.new_keys += taken.new_keys
        self._counters.refused_rows += taken.refused
        return taken.numbers, taken.newly_active


class SamplesOnly:
    """The index has nothing to learn from these records."""

    def __init__(self) -> None:
        self._numbering = BucketNumbering()

    def take(self, batch: Columns, offsets: I64s) -> tuple[U32s, Rows]:  # noqa: ARG002 - the protocol's
        return self._numbering.take(batch)


class TailNumbers:
    """Keys are kept apart until `join`; from then on the index hears of every batch too.

    The numbers stay the bucket's own to its end, since the index may refuse a key whose samples are in the buffer.
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
        """Whether the index hears of every batch."""
        return self._index is not None

    def join(self, index: ShardIndex) -> None:
        """Let all that was taken count for the index, whose open bucket is this one."""
        if self._keys is None:
            raise ValueError(f"the tail has joined the index in bucket {index.open.bucket} before")
        taken = index.take_summary(self._keys.summary(), self._keys.part_keys().take)
        self._counters.new_keys += taken.new_keys
        self._counters.refused_rows += taken.refused
        self._keys, self._index = None, index
