"""A bucket from its cut until all of it is stored."""

from dataclasses import dataclass

from strandline.index.time_bucket import FrozenBucket
from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.rows import CutRow


@dataclass(frozen=True, slots=True)
class ClosedIndex:
    """The index's side of a closed bucket: its records, and the next part id at the cut."""

    bucket: FrozenBucket
    next_part_id: int


@dataclass(frozen=True, slots=True)
class ClosedBucket:
    """What is to be stored of a bucket.

    `groups` are those that have no row yet. `index` is None where the index bucket is stored already. `cut_committed`
    says that the cut row was, too; until then its `expires` is not settled. `urgent` says that nobody waits for a quiet
    moment, as in a replay.
    """

    cut: CutRow
    buffer: FrozenBuffer
    index: ClosedIndex | None
    groups: frozenset[int]
    cut_committed: bool
    urgent: bool

    @property
    def bucket(self) -> int:
        return self.cut.bucket
