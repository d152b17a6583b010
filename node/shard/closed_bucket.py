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
    """The index's side of a closed bucket: its records, and the next part id at the cut. Of its records, how many are
    of keys that ended with it, and how many are there only because an older bucket that holds the record goes.
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
        # A key that changed had a sample, so that it can't have ended; what is neither was rolled over.
        ended = live - index.columns.live
        return cls(frozen, index.next_part_id, ended, len(frozen.part_ids) - changed - ended)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Samples that a replay job has stored: under its attempt, until when, and what there is to say of each group."""

    attempt: str
    expires: int
    groups: Mapping[int, StoredGroup]


@dataclass(frozen=True, slots=True)
class ClosedBucket:
    """What is to be stored of a bucket.

    `samples` are in memory, or already in the store. `groups` are those that have no row yet. `index` is None where the
    index bucket is stored already. `cut_committed` says that the cut row was, too; until then its `expires` is not
    settled. `urgent` says that nobody waits for a quiet moment, as in a replay.
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
        """How much disk its samples take."""
        return self.samples.status().spilled_bytes if isinstance(self.samples, FrozenBuffer) else 0

    def view(self) -> BufferView | None:
        """Its samples for a query, as far as they are in memory."""
        return self.samples.snapshot() if isinstance(self.samples, FrozenBuffer) else None

    def release(self, group: int) -> None:
        """The group is stored, or was before: let go of its samples."""
        if isinstance(self.samples, FrozenBuffer):
            self.samples.release(group)
