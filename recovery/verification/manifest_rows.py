"""The invariants of a manifest's rows, independent of what they reference. Pure functions.

Checkpoints are computed from the rows. So that no checkpoint is beyond what is stored, no group may have a row after a
bucket in which it has none. So that expired rows may count as stored, rows expire in the order of their buckets, and a
group's row does not expire before its cut.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from strandline.index.policy import BucketPolicy
from strandline.recovery.verification.findings import FindingKind, Findings, NoteKind, counted
from strandline.recovery.verification.layout import ShardLayout
from strandline.store.rows import CutRow, GroupRow, ManifestRows


def check_manifest(manifest: ManifestRows, layout: ShardLayout, now: int, found: Findings) -> None:
    """Report all inconsistencies among a shard's rows."""
    cuts = sorted(manifest.cuts, key=lambda cut: cut.bucket)
    rows = sorted(manifest.groups, key=lambda row: (row.bucket, row.group))
    since_reset = cuts_since_reset(cuts)
    gaps = _check_cuts(since_reset, found)
    _check_rows_have_cuts(rows, cuts, gaps, layout, now=now, found=found)
    _check_holes(rows, since_reset, layout.groups, found)
    _check_expiry(rows, cuts, found)
    _check_index(rows, layout.designated, found)
    _note_superseded(rows, found)


def cuts_since_reset(cuts: Sequence[CutRow]) -> Sequence[CutRow]:
    """The cut rows that count, out of sorted rows: from the newest reset on, or all."""
    newest = max((position for position, cut in enumerate(cuts) if cut.reset), default=0)
    return cuts[newest:]


def _check_cuts(cuts: Sequence[CutRow], found: Findings) -> Sequence[range]:
    """Check the cuts; return the ranges of buckets that are missing between them."""
    for cut in cuts:
        if cut.end < cut.start:
            found.add(
                FindingKind.CUTS_TORN, f"its cut starts at offset {cut.start} but ends at {cut.end}", bucket=cut.bucket
            )
        elif cut.lost_to is not None and not cut.start <= cut.lost_to <= cut.end:
            found.add(
                FindingKind.CUTS_TORN,
                f"its cut marks offsets up to {cut.lost_to} as lost, but its range is [{cut.start}, {cut.end})",
                bucket=cut.bucket,
            )
        elif cut.lost_to is not None:
            found.note(
                NoteKind.LOSS_ACCEPTED,
                f"the loss of offsets [{cut.start}, {cut.lost_to}) was accepted, for groups that had no row yet",
                bucket=cut.bucket,
            )
    gaps = []
    for before, after in pairwise(cuts):
        if after.bucket != before.bucket + 1 or after.start != before.end:
            found.add(
                FindingKind.CUTS_TORN,
                f"its cut starts at offset {after.start}, but the previous cut, bucket {before.bucket}, ends at"
                f" offset {before.end}",
                bucket=after.bucket,
            )
            gaps.append(range(before.bucket + 1, after.bucket))
    return gaps


def _check_rows_have_cuts(
    rows: Iterable[GroupRow],
    cuts: Sequence[CutRow],
    gaps: Sequence[range],
    layout: ShardLayout,
    *,
    now: int,
    found: Findings,
) -> None:
    by_bucket = {cut.bucket: cut for cut in cuts}
    oldest = cuts[0].bucket if cuts else None
    without_cut = defaultdict(list)
    for row in rows:
        if not 0 <= row.group < layout.groups:
            found.add(
                FindingKind.ROW_MISPLACED,
                f"there is a row of group {row.group}, but the dataset has {counted(layout.groups, 'group')}",
                bucket=row.bucket,
                group=row.group,
            )
        cut = by_bucket.get(row.bucket)
        if cut is not None:
            if cut.reset:
                without_cut[row.bucket].append(row.group)
        # A cut that is missing between others was reported already.
        elif not any(row.bucket in gap for gap in gaps) and not _may_have_outlived_cut(row, oldest, layout.policy, now):
            without_cut[row.bucket].append(row.group)
    for bucket, of_groups in without_cut.items():
        why = "the cut is a reset and not a bucket" if bucket in by_bucket else "there is no cut row"
        listed = ", ".join(map(str, of_groups))
        found.add(FindingKind.ROW_MISPLACED, f"{why}, but groups {listed} have rows", bucket=bucket)


def _may_have_outlived_cut(row: GroupRow, oldest: int | None, policy: BucketPolicy, now: int) -> bool:
    """Whether a row without a cut may have outlived it, because it was written long after it. The cut was committed
    after its bucket's time had started, and lives at least as long as data written then. Data that was written before
    the end of its bucket lives from that end on: an accepted loss closes a bucket early. A row that was written later
    than that, as after a rewind, may be from after the retention was made longer.
    """
    if oldest is not None and row.bucket > oldest:
        return False
    start, end = row.bucket * policy.flush_interval, (row.bucket + 1) * policy.flush_interval
    if oldest is not None and row.written_at > end + policy.flush_interval:
        return True
    return now >= start + (row.data_expires - max(row.written_at, end))


def _check_holes(rows: Iterable[GroupRow], cuts: Sequence[CutRow], groups: int, found: Findings) -> None:
    stored = {(row.bucket, row.group) for row in rows if not row.superseded}
    for group in range(groups):
        hole: int | None = None
        for cut in cuts:
            if cut.reset:
                continue
            is_stored = (cut.bucket, group) in stored
            if not is_stored and hole is None:
                hole = cut.bucket
            elif is_stored and hole is not None:
                found.add(
                    FindingKind.ROW_BEHIND_HOLE,
                    f"group {group} has a row for bucket {cut.bucket}, but no valid row for bucket {hole}",
                    bucket=hole,
                    group=group,
                )
                break


def _check_expiry(rows: Iterable[GroupRow], cuts: Sequence[CutRow], found: Findings) -> None:
    for before, after in pairwise(cuts):
        if after.expires < before.expires:
            found.add(
                FindingKind.ROW_EXPIRY,
                f"its cut expires at {after.expires}, before that of bucket {before.bucket}, at {before.expires}",
                bucket=after.bucket,
            )
    cut_expires = {cut.bucket: cut.expires for cut in cuts}
    latest: dict[int, GroupRow] = {}
    for row in rows:
        if row.superseded:
            continue
        before_it = latest.get(row.group)
        latest[row.group] = row
        if before_it is not None and row.expires < before_it.expires:
            what = f"before that of bucket {before_it.bucket}, at {before_it.expires}"
        elif row.expires < cut_expires.get(row.bucket, row.expires):
            what = f"before its bucket's cut, at {cut_expires[row.bucket]}"
        elif row.expires < row.data_expires:
            what = f"before the data that it references, at {row.data_expires}"
        else:
            continue
        found.add(
            FindingKind.ROW_EXPIRY,
            f"the row of group {row.group} expires at {row.expires}, {what}",
            bucket=row.bucket,
            group=row.group,
        )


def _check_index(rows: Iterable[GroupRow], designated: int, found: Findings) -> None:
    for row in rows:
        if (row.index is not None) == (row.group == designated):
            continue
        what = (
            f"the row of group {row.group} references no index bucket, but rows of the designated group must"
            if row.index is None
            else f"the row of group {row.group} references an index bucket, but only rows of group {designated} may"
        )
        found.add(FindingKind.INDEX_MISPLACED, what, bucket=row.bucket, group=row.group)


def _note_superseded(rows: Iterable[GroupRow], found: Findings) -> None:
    buckets = [row.bucket for row in rows if row.superseded]
    if buckets:
        found.note(
            NoteKind.SUPERSEDED,
            f"{counted(len(buckets), 'row')} of buckets {min(buckets)} to {max(buckets)} are superseded by a"
            " rewind and not written again yet; their segments are not checked",
        )
