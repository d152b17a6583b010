"""A bucket from its cut until all of it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.index.shard_index import ShardIndex
from strandline.index.time_bucket import FrozenBucket
from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.buffer.view import BufferView
from strandline.store.group_write import StoredGroup
from strandline.store.rows import CutRow


@dataclass(frozen=True, slots=True)
class ClosedIndex:
    """The index bucket of a closed bucket, and the next part id at the cut. `ended` and `rolled_over` count those of
    its records whose keys ended with it, and those that are only rolled over from an expiring bucket.
    """

    bucket: FrozenBucket
    next_part_id: int
    ended: int = 0
    rolled_over: int = 0

    @classmethod
    def of(cls, index: ShardIndex) -> "ClosedIndex":
        """Cut the index's open bucket."""
        changed, live = len(index.open.changed), index.columns.live
        frozen = index.cut()
        # A key that changed had a sample, so it can't have ended. The remaining records are rolled over.
        ended = live - index.columns.live
        return cls(frozen, index.next_part_id, ended, len(frozen.part_ids) - changed - ended)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Samples that a replay job has stored: its attempt, when they expire, and the figures of each group."""

    attempt: str
    expires: int
    groups: Mapping[int, StoredGroup]


@dataclass(frozen=True, slots=True)
class ClosedBucket:
    """What has to be stored of a bucket.

    `samples` are in memory, or already in the store. `groups` are those without a row yet. `index` is None if the index
    bucket is already stored. `cut_committed` is whether the cut row is committed; before that, its `expires` is not
    final. An `urgent` bucket, as in a replay, is stored at once instead of spread over the flush interval.
    """

    cut: CutRow
    samples: FrozenBuffer | Replayed
    index: ClosedIndex | None
    groups: frozenset[int]
    cut_committed: bool
    urgent: bool

    @property
    def bucket(self) -> int:
        return self.cut.bucket

    @property
    def has_only_rows_to_commit(self) -> bool:
        """Whether its segments are all in the store, or there are none: then only rows are left to commit."""
        return not isinstance(self.samples, FrozenBuffer) or self.samples.status().samples == 0

    @property
    def spilled_bytes(self) -> int:
        """The disk space that its samples take."""
        return self.samples.status().spilled_bytes if isinstance(self.samples, FrozenBuffer) else 0

    def view(self) -> BufferView | None:
        """Its samples in memory, for a query; None if they are in the store."""
        return self.samples.snapshot() if isinstance(self.samples, FrozenBuffer) else None

    def release(self, group: int) -> None:
        """Release a group's samples, which are stored."""
        if isinstance(self.samples, FrozenBuffer):
            self.samples.release(group)
