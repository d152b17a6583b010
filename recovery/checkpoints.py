"""How far a shard is stored, computed from the rows of its manifest: pure functions.

A group's checkpoint is the end of the newest bucket up to which its rows have no hole. The index's checkpoint is that
of the designated group, whose rows reference the index buckets. Checkpoints are never stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from strandline.digest import digest
from strandline.errors import Fatal
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ShardId

EXPIRY_SKEW_MS = 60_000
"""Rows that expire within this time may be missing from the next read: the clock of the process that compares expiry
times and the clocks of the servers that remove rows may differ by as much.
"""


class ManifestInconsistent(Fatal):
    """The cut rows of a shard are not contiguous: one is missing, two overlap, or one ends before it starts."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a shard is stored.

    `cuts` are the rows that count, oldest first: from the newest reset on, or all. The row of a first start is a reset
    too: not a bucket, but an offset that all groups count as stored. `missing` has the groups without a row, by bucket,
    for every bucket that has a cut. `stored_up_to` has, by group, the newest bucket up to which there is no hole. If
    the oldest bucket is a hole, that is the bucket before it.
    """

    cuts: Sequence[CutRow]
    checkpoints: Sequence[int]
    stored_up_to: Sequence[int]
    missing: dict[int, frozenset[int]]

    @property
    def lowest(self) -> int:
        """The lowest checkpoint of all groups."""
        return min(self.checkpoints)

    @property
    def resume_at(self) -> int:
        """The offset at which reading continues: the lowest checkpoint, or the end of the accepted losses that start
        there.
        """
        offset = self.lowest
        for cut in self.cuts:
            if cut.lost_to is not None and cut.start <= offset < cut.lost_to:
                offset = cut.lost_to
        return offset


def designated_group(shard: ShardId, groups: int) -> int:
    """The group whose rows reference the index buckets. It differs between shards, so that they do not all write their
    index at the same time.
    """
    return digest(str(shard).encode()) % groups


def progress(manifest: ManifestRows, groups: int, shard: ShardId) -> Progress | None:
    """How far a shard is stored; None if it has no cut row, so was never read. Raises `ManifestInconsistent`.

    Expired rows count as stored. This relies on two invariants: rows expire in the order of their buckets, and group
    rows do not expire before their cut.
    """
    cuts = _since_reset(sorted(manifest.cuts, key=lambda cut: cut.bucket))
    if not cuts:
        return None
    check_contiguous(cuts, shard)
    stored = {(row.bucket, row.group) for row in manifest.groups if not row.superseded}
    checkpoints, stored_up_to = [], []
    for group in range(groups):
        checkpoint, newest = cuts[0].start, cuts[0].bucket - 1
        for cut in cuts:
            # A reset is not a bucket: it has nothing to store.
            if not cut.reset and (cut.bucket, group) not in stored:
                break
            checkpoint, newest = cut.end, cut.bucket
        checkpoints.append(checkpoint)
        stored_up_to.append(newest)
    missing = {
        cut.bucket: frozenset(group for group in range(groups) if (cut.bucket, group) not in stored)
        for cut in cuts
        if not cut.reset
    }
    return Progress(cuts, checkpoints, stored_up_to, missing)


def without_expired_buckets(manifest: ManifestRows, present: int) -> ManifestRows:
    """The manifest without the remains of its oldest buckets, if their cuts have expired or are about to. The store
    removes rows that expire at about the same time in any order, within some seconds, or much later if its clock was
    set in between. So a cut may be gone that older ones need, or the row of a group although newer ones are there: a
    group's rows are written in the order of their buckets, so that row existed. A gap before rows that must exist is
    kept, so that `progress` reports it.
    """
    cuts = _since_reset(sorted(manifest.cuts, key=lambda cut: cut.bucket))
    if not cuts or cuts[0].expires > present + EXPIRY_SKEW_MS:
        return manifest  # As usual: then the rows need not be looked at.
    gap = max(
        (position for position, (old, new) in enumerate(pairwise(cuts)) if not _is_contiguous(old, new)), default=-1
    )
    stored = {(row.bucket, row.group) for row in manifest.groups}
    newest = {row.group: row.bucket for row in sorted(manifest.groups, key=lambda row: row.bucket)}
    incomplete = max(
        (
            position
            for position, cut in enumerate(cuts)
            if cut.expires <= present + EXPIRY_SKEW_MS
            and not cut.reset
            and any(bucket > cut.bucket and (cut.bucket, group) not in stored for group, bucket in newest.items())
        ),
        default=-1,
    )
    last = max(gap, incomplete)
    if last < 0 or any(cut.expires > present + EXPIRY_SKEW_MS for cut in cuts[: last + 1]):
        return manifest
    removed_to = cuts[last].bucket
    return ManifestRows(
        manifest.state,
        tuple(cut for cut in manifest.cuts if cut.bucket > removed_to),
        tuple(row for row in manifest.groups if row.bucket > removed_to),
    )


def check_contiguous(cuts: Sequence[CutRow], shard: ShardId) -> None:
    """Raise `ManifestInconsistent` unless each bucket starts where the previous one ends, and ends at or after its
    start.
    """
    remedy = "Restore the manifest from a backup. Strandline itself does not remove or change such rows"
    for cut in cuts:
        if cut.end < cut.start:
            raise ManifestInconsistent(
                f"the manifest of {shard} has bucket {cut.bucket} from offset {cut.start} to {cut.end}: it ends before"
                " it starts",
                remedy=remedy,
            )
    for before, after in pairwise(cuts):
        if not _is_contiguous(before, after):
            raise ManifestInconsistent(
                f"the cuts of {shard} are not contiguous: bucket {before.bucket} ends at offset {before.end}, bucket"
                f" {after.bucket} starts at offset {after.start}",
                remedy=remedy,
            )


def index_rows(manifest: ManifestRows, designated: int, now: int) -> Sequence[GroupRow]:
    """The rows that reference index buckets which have not expired, newest first. Superseded rows are included: the
    keys and ids in their buckets still count.
    """
    rows = [
        row for row in manifest.groups if row.group == designated and row.index is not None and row.data_expires > now
    ]
    return sorted(rows, key=lambda row: row.bucket, reverse=True)


def _is_contiguous(before: CutRow, after: CutRow) -> bool:
    return after.bucket == before.bucket + 1 and after.start == before.end


def _since_reset(cuts: Sequence[CutRow]) -> Sequence[CutRow]:
    newest = max((position for position, cut in enumerate(cuts) if cut.reset), default=0)
    return cuts[newest:]
