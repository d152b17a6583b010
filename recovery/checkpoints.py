"""What the manifest says of how far a shard is stored: pure functions over its rows.

A group's checkpoint is the end of the newest bucket up to which its rows have no hole. The index's checkpoint is that
of the designated group, whose rows name the index buckets. Neither is stored anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from strandline.digest import digest
from strandline.errors import Fatal
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ShardId

EXPIRY_SKEW_MS = 60_000
"""Rows whose date lies less than this ahead may be gone at the next look: the clock of the process that compares dates
and those of the servers that remove rows may differ by as much."""


class ManifestInconsistent(Fatal):
    """The cut rows of a shard do not join: one is missing, two overlap, or one ends before it begins."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a shard is stored.

    `cuts` are the rows that count, oldest first: from the newest reset on, or all. A first start's row is a reset too:
    no bucket, but an offset that all groups count as stored. `missing` are the groups without a row, by bucket, of
    every bucket that has a cut. `stored_up_to` is by group the newest bucket up to which there is no hole, which is the
    one before the oldest if that is a hole.
    """

    cuts: Sequence[CutRow]
    checkpoints: Sequence[int]
    stored_up_to: Sequence[int]
    missing: dict[int, frozenset[int]]

    @property
    def lowest(self) -> int:
        """The offset from which on something is not stored."""
        return min(self.checkpoints)

    @property
    def resume_at(self) -> int:
        """Where reading goes on: there, or behind what a person has accepted as lost from there on."""
        offset = self.lowest
        for cut in self.cuts:
            if cut.lost_to is not None and cut.start <= offset < cut.lost_to:
                offset = cut.lost_to
        return offset


def designated_group(shard: ShardId, groups: int) -> int:
    """The group whose rows name the index buckets; another one for each shard, so that not all write at one time."""
    return digest(str(shard).encode()) % groups


def progress(manifest: ManifestRows, groups: int, shard: ShardId) -> Progress | None:
    """How far a shard is stored; None if it has no cut row, and so was never read. Raises `ManifestInconsistent`.

    What has expired is taken for stored: it relies on rows that expire in the order of their buckets, and on group rows
    that do not expire before their cut.
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
            # A reset is no bucket: nothing of it was to be stored.
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


def without_expired_cuts(manifest: ManifestRows, present: int) -> ManifestRows:
    """A manifest without old cuts that no newer one joins, if their time has come, or nearly: rows whose lives end
    together leave the store in any order, within some seconds. A gap in front of rows that should be there is left for
    `progress` to report.
    """
    cuts = _since_reset(sorted(manifest.cuts, key=lambda cut: cut.bucket))
    gap = max((place for place, (old, new) in enumerate(pairwise(cuts)) if not _is_contiguous(old, new)), default=None)
    if gap is None or any(cut.expires > present + EXPIRY_SKEW_MS for cut in cuts[: gap + 1]):
        return manifest
    newest = cuts[gap].bucket
    return ManifestRows(
        manifest.state,
        tuple(cut for cut in manifest.cuts if cut.bucket > newest),
        tuple(row for row in manifest.groups if row.bucket > newest),
    )


def check_contiguous(cuts: Sequence[CutRow], shard: ShardId) -> None:
    """Raise `ManifestInconsistent` unless each bucket starts where the previous one ends and does not end before it starts."""
    remedy = "Restore the manifest from a copy: Strandline itself neither removes nor changes such rows"
    for cut in cuts:
        if cut.end < cut.start:
            raise ManifestInconsistent(
                f"the manifest of {shard} has bucket {cut.bucket} from offset {cut.start} up to {cut.end}",
                remedy=remedy,
            )
    for before, after in pairwise(cuts):
        if not _is_contiguous(before, after):
            raise ManifestInconsistent(
                f"the manifest of {shard} has bucket {before.bucket} up to offset {before.end}, and then bucket"
                f" {after.bucket} from offset {after.start}",
                remedy=remedy,
            )


def index_rows(manifest: ManifestRows, designated: int, now: int) -> Sequence[GroupRow]:
    """The rows that name index buckets which have not expired, newest first, superseded ones too: keys and ids in them
    still count.
    """
    rows = [
        row for row in manifest.groups if row.group == designated and row.index is not None and row.data_expires > now
    ]
    return sorted(rows, key=lambda row: row.bucket, reverse=True)


def _is_contiguous(before: CutRow, after: CutRow) -> bool:
    return after.bucket == before.bucket + 1 and after.start == before.end


def _since_reset(cuts: Sequence[CutRow]) -> Sequence[CutRow]:
    newest = max((place for place, cut in enumerate(cuts) if cut.reset), default=0)
    return cuts[newest:]
