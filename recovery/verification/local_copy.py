"""Checks the local copy of a shard's index against the stored index buckets.

The copy is opened as a start would. A damaged copy, or one that the manifest does not reference, would be rebuilt by a
start, so it is not a fault. A copy that would be used has to be correct.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strandline.index.bitmaps import to_bitmap
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.local_copy import CopyIdentity, CopyUnusable, open_copy, saved_identity
from strandline.index.part_columns import LIVE, PartRows
from strandline.recovery.verification.documents import ExpectedDocuments, differences
from strandline.recovery.verification.findings import FindingKind, Findings, NoteKind, with_first
from strandline.recovery.verification.known_keys import KnownKeys
from strandline.store.rows import GroupRow, ShardId


@dataclass(frozen=True, slots=True)
class CopyCheck:
    """What a copy is compared with. `rows` are those that reference readable index buckets."""

    shard: ShardId
    topic_id: str
    retention: int
    rows: Mapping[int, GroupRow]
    known: KnownKeys
    found: Findings

    def check(self, folder: Path) -> None:
        """Check the copy in a folder that no other process has open. The folder may be cleaned up, as in a start."""
        try:
            index, snapshot = open_copy(folder, self._expected(folder, saved_identity(folder)), self.retention)
        except CopyUnusable as error:
            self.found.note(NoteKind.COPY_UNUSED, f"a start would not use the local copy: {error.reason}")
            return
        with index:
            faults = list(self._against_buckets(snapshot))
            keys = snapshot.keys.take(np.argsort(snapshot.keys.part_id))
            faults += differences(index, ExpectedDocuments(keys.part_id, keys.key_low, keys.key_high))
        for what in faults:
            self.found.add(FindingKind.COPY_DIFFERS, f"in the local copy: {what}", bucket=snapshot.bucket)

    def _expected(self, folder: Path, saved: CopyIdentity) -> CopyIdentity:
        row = self.rows.get(saved.bucket)
        if row is None or row.index is None or row.superseded:
            raise CopyUnusable(folder, f"the manifest has no index bucket {saved.bucket}")
        return CopyIdentity(self.shard.dataset, self.topic_id, self.shard.shard, saved.bucket, row.index.attempt)

    def _against_buckets(self, snapshot: CutSnapshot) -> Iterator[str]:
        """The records that the copy refers to must exist, and the copy must have every live key."""
        keys, known = snapshot.keys, self.known
        numbers = known.find(keys.key_low.astype(np.uint64), keys.key_high.astype(np.uint64))
        readable = np.isin(keys.newest, list(self.rows))
        wrong = readable & ~known.has_record(keys.newest.astype(np.int64), keys.part_id, numbers)
        if number := int(np.count_nonzero(wrong)):
            first = _first(keys, wrong)
            yield with_first(
                "keys that have no such record in the index bucket that should contain it",
                number,
                f"part id {first.part_id[0]} in bucket {first.newest[0]}",
            )
        live = known.counting(snapshot.bucket, LIVE)
        if missing := to_bitmap(live.part_id) - to_bitmap(keys.part_id):
            yield with_first(
                f"keys that are missing and were live when bucket {snapshot.bucket} was stored",
                len(missing),
                f"part id {missing[0]}",
            )
        if snapshot.bucket in known.active and snapshot.active.get(snapshot.bucket) != known.active[snapshot.bucket]:
            yield f"the active keys of bucket {snapshot.bucket} differ from those in its index bucket"


def _first(keys: PartRows, which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> PartRows:
    return keys.take(np.flatnonzero(which)[:1])
