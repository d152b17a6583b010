"""Verifies a shard: the order of the checks, and which checks a finding makes meaningless."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from strandline.arrays import U32s
from strandline.clock import Clock
from strandline.index.bucket_codec import BucketDamaged, StoredBucket
from strandline.index.bucket_load import load_index
from strandline.index.documents import MalformedBatch
from strandline.index.key_documents import LuceneDocuments
from strandline.index.key_table import MISSING
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.failures import LuceneFailed
from strandline.recovery.checkpoints import ManifestInconsistent, index_rows, progress
from strandline.recovery.keyless_series import is_salvaged
from strandline.recovery.verification.activity import Activity, ActivityCheck
from strandline.recovery.verification.documents import ExpectedDocuments, differences
from strandline.recovery.verification.expiry_horizon import ExpiryHorizon
from strandline.recovery.verification.findings import Counts, Finding, FindingKind, Findings, Note, NoteKind, with_first
from strandline.recovery.verification.group_segments import GroupReader
from strandline.recovery.verification.index_buckets import BucketReader, check_bucket
from strandline.recovery.verification.known_keys import KeyCollector, KnownKeys
from strandline.recovery.verification.layout import ShardLayout
from strandline.recovery.verification.local_copy import CopyCheck
from strandline.recovery.verification.lost_keys import LostKeys
from strandline.recovery.verification.manifest_rows import check_manifest
from strandline.store.protocol import Store
from strandline.store.rows import GroupRow, ManifestRows

OnProgress = Callable[[int, int], None]


def _no_progress(_done: int, _all: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Verification:
    """The findings and notes of a shard, and how much was checked."""

    counts: Counts
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """How much of a shard is checked.

    With `samples`, samples are decompressed; without, only the segments' checksums and directories are checked.
    `scratch` is an empty folder for a Lucene index made from the buckets, which needs a running JVM; None for none.
    `copy` is a local copy of the shard's index that no other process has open; None for none.
    """

    samples: bool = True
    scratch: Path | None = None
    copy: Path | None = None


def verify_shard(
    store: Store,
    manifest: ManifestRows,
    layout: ShardLayout,
    clock: Clock,
    *,
    scope: Scope | None = None,
    on_progress: OnProgress = _no_progress,
) -> Verification:
    """Check everything that the manifest of a shard references. `on_progress` receives how many pieces are done and how
    many there are: index buckets and group rows.

    Nothing is written. Raises only if the store can't be read.
    """
    return _Verifier(store, manifest, layout, ExpiryHorizon(store, clock), scope or Scope(), on_progress).verify()


@dataclass(slots=True)
class _Verifier:
    store: Store
    manifest: ManifestRows
    layout: ShardLayout
    expiry: ExpiryHorizon
    scope: Scope
    on_progress: OnProgress
    found: Findings = field(default_factory=Findings)
    counts: Counts = field(default_factory=Counts)
    _index_rows: Mapping[int, GroupRow] = field(default_factory=dict)
    _rows: Sequence[GroupRow] = ()
    _done: int = 0
    # Whether every index bucket is readable and reliable: otherwise no key can be reported as unknown.
    _is_index_reliable: bool = True
    # Whether everything readable in index buckets is reliable: only then are the losses of damaged buckets known.
    _are_keys_reliable: bool = True
    _damaged: set[int] = field(default_factory=set)
    _salvaged: Set[int] = frozenset()

    def verify(self) -> Verification:
        horizon = self.expiry.horizon()
        # The store may still have rows that have expired, and may lack rows that are about to expire.
        self.manifest = self.manifest.unexpired(horizon)
        check_manifest(self.manifest, self.layout, horizon, self.found)
        designated = self.layout.designated
        self._index_rows = {row.bucket: row for row in index_rows(self.manifest, designated, horizon)}
        self._rows = [row for row in self.manifest.groups if not row.superseded and row.data_expires > horizon]
        self._salvaged = {
            row.bucket for row in self._rows if row.index is not None and is_salvaged(row.index.attempt, row.bucket)
        }
        self._is_index_reliable = not any(row.index is None for row in self._rows if row.group == designated)
        self.counts.buckets = len({row.bucket for row in self._rows})
        with ExitStack() as opened:
            lucene = None
            if self.scope.scratch is not None:
                lucene = opened.enter_context(PartKeyIndex.open(self.scope.scratch / "lucene"))
            known = self._read_index(lucene)
        self._read_segments(known)
        if self.scope.copy is not None and self._is_index_reliable:
            topic_id, retention = self.manifest.state.topic_id, self.layout.policy.retention
            # The records of buckets that have expired meanwhile are unknown.
            rows = {
                bucket: row
                for bucket, row in self._index_rows.items()
                if not self.expiry.may_have_expired(row.data_expires)
            }
            CopyCheck(self.layout.shard, topic_id, retention, rows, known, self.found).check(self.scope.copy)
        return Verification(self.counts, tuple(self.found.found), tuple(self.found.notes))

    # Index buckets, Lucene.

    @property
    def _reader(self) -> BucketReader:
        return BucketReader(self.store, self.layout.shard, self.expiry, self._index_rows)

    def _read_index(self, lucene: PartKeyIndex | None) -> KnownKeys:
        collector = KeyCollector()
        buckets = self._reliable_buckets(collector)
        open_bucket = self._open_bucket()
        if lucene is None or open_bucket is None:
            for _ in buckets:
                pass
            known = self._check_keys(collector)
        else:
            try:
                load_index(
                    self.layout.policy,
                    LuceneDocuments(lucene),
                    buckets,
                    {bucket: row.data_expires for bucket, row in self._index_rows.items()},
                    open_bucket=open_bucket,
                    next_part_id=self.manifest.state.next_part_id,
                    series_limit=MISSING,
                )
            except (MalformedBatch, LuceneFailed) as error:
                self.found.add(FindingKind.LUCENE_DIFFERS, f"the index can't be loaded: {error.message}")
                for _ in buckets:
                    pass
            known = self._check_keys(collector)
            self._compare_documents(lucene, known, open_bucket)
        return known

    def _reliable_buckets(self, collector: KeyCollector) -> Iterator[StoredBucket]:
        """Each index bucket, newest first, after checking it; without those that can't be relied on."""
        reader = self._reader
        for bucket in self._index_rows:
            try:
                stored = reader.read(bucket, self.counts)
            except BucketDamaged as error:
                self.found.add(FindingKind.INDEX_DAMAGED, error.message, bucket=bucket)
                self._is_index_reliable = False
                self._salvage(bucket, collector)
                stored = None
            self._report_progress()
            if stored is None:
                continue
            if check_bucket(stored, self.found):
                collector.take(stored)
                yield stored
            else:
                self._is_index_reliable = self._are_keys_reliable = False

    def _salvage(self, bucket: int, collector: KeyCollector) -> None:
        """Add the keys in the readable part of a damaged bucket: they are not lost."""
        self._damaged.add(bucket)
        left = self._reader.salvage(bucket)
        if check_bucket(left, self.found):
            collector.take(left)
        else:
            self._are_keys_reliable = False

    def _check_keys(self, collector: KeyCollector) -> KnownKeys:
        """Check what must hold across all buckets."""
        known, reader = collector.known(), self._reader
        self.counts.keys = len(known)
        for one, other in known.ids_with_two_keys():
            self._is_index_reliable = False
            part_id, buckets = int(one.part_id[0]), (int(one.bucket[0]), int(other.bucket[0]))
            names = " and ".join(f"{reader.name(bucket, part_id)} in bucket {bucket}" for bucket in buckets)
            self.found.add(
                FindingKind.ID_WITH_TWO_KEYS, f"part id {part_id} is that of two keys: {names}", bucket=buckets[1]
            )
        next_part_id = self.manifest.state.next_part_id
        if len(known.ids) and int(known.ids.part_id[-1]) >= next_part_id:
            newest = known.ids.take(slice(-1, None))
            self.found.add(
                FindingKind.NEXT_PART_ID,
                f"part id {newest.part_id[0]} is in use, but the next one is recorded as {next_part_id}",
                bucket=int(newest.bucket[0]),
            )
        if self._is_index_reliable:
            self._check_ids(known)
        return known

    def _check_ids(self, known: KnownKeys) -> None:
        reader, ids = self._reader, known.ids
        designated, horizon = self.layout.designated, self.expiry.horizon()
        expired = {
            row.bucket
            for row in self.manifest.groups
            if row.group == designated and row.index is not None and row.data_expires <= horizon
        }
        for old, new in known.keys_with_two_ids(self.layout.policy, self._min_retention(), expired):
            self.found.add(
                FindingKind.KEY_WITH_TWO_IDS,
                f"{reader.name(int(ids.bucket[new]), int(ids.part_id[new]))} was part id {ids.part_id[old]} before,"
                " which had not been purged",
                bucket=int(ids.bucket[new]),
            )
        for bucket, unknown in known.unknown_active():
            # An expired bucket was read while others of the same expiry time, with its keys' records, were gone.
            is_remains = bucket in expired or any(one > bucket for one in expired)
            if is_remains or self._were_purged_and_expired(bucket, unknown):
                what = with_first("active part ids whose records have expired", len(unknown), unknown[0])
                self.found.note(NoteKind.ACTIVE_EXPIRED, what, bucket=bucket)
            elif self._salvaged:
                what = with_first(
                    "active part ids whose records were lost with an index bucket", len(unknown), unknown[0]
                )
                self.found.note(NoteKind.INDEX_LOSS_ACCEPTED, what, bucket=bucket)
            else:
                what = with_first("active part ids without a record in any index bucket", len(unknown), unknown[0])
                self.found.add(FindingKind.ACTIVE_UNKNOWN, what, bucket=bucket)

    def _were_purged_and_expired(self, bucket: int, part_ids: U32s) -> bool:
        """Whether keys that were active in a bucket have no record because they were purged since. The bucket has taken
        over each record that would have expired soon after its cut. After a purge no later bucket does, so a record in
        an older bucket expires before this one.
        """
        open_bucket, policy = self._open_bucket(), self.layout.policy
        try:
            stored = self._reader.read(bucket)
        except BucketDamaged:
            return False
        if stored is None or open_bucket is None:
            return stored is None
        if min(self.manifest.cuts, key=lambda cut: cut.bucket).reset:
            return False  # No bucket has expired yet.
        last = stored.last[np.isin(stored.active_ids, part_ids)]
        purged_before = open_bucket * policy.flush_interval - self._min_retention()
        if (last >= purged_before).any():
            return False
        shortest = min((row.data_expires - row.written_at for row in self._rows if row.index is not None), default=0)
        margin = max(0, min(policy.margin, shortest - policy.retention))
        return self.expiry.may_have_expired((bucket + 2) * policy.flush_interval + margin)

    def _min_retention(self) -> int:
        """The lowest retention that was in force while any of the stored data was written. A row's lifetime is the
        retention plus the margin at that time; one of the two is assumed to be today's.
        """
        rows = [row for row in self.manifest.groups if row.index is not None]
        if not rows:
            return self.layout.policy.retention
        shortest = min(row.data_expires - row.written_at for row in rows)
        newest = max(rows, key=lambda row: row.written_at)
        shorter = newest.data_expires - newest.written_at - shortest
        policy = self.layout.policy
        return max(0, min(policy.retention - shorter, shortest - policy.margin))

    def _open_bucket(self) -> int | None:
        try:
            done = progress(self.manifest, self.layout.groups, self.layout.shard)
        except ManifestInconsistent:
            # Already reported. Such a shard can't start, so there is nothing to compare with.
            return None
        return None if done is None else done.stored_up_to[self.layout.designated] + 1

    def _compare_documents(self, lucene: PartKeyIndex, known: KnownKeys, open_bucket: int) -> None:
        if not self._is_index_reliable:
            return
        lucene.refresh()
        counting = known.counting(2**31 - 1, self.layout.policy.purge_before(open_bucket - 1))
        numbers = counting.number
        self.counts.documents = len(counting)
        expected = ExpectedDocuments(counting.part_id, known.low[numbers], known.high[numbers])
        for what in differences(lucene, expected):
            self.found.add(FindingKind.LUCENE_DIFFERS, f"in an index that was loaded from the buckets: {what}")

    # Segments and active keys.

    def _read_segments(self, known: KnownKeys) -> None:
        if not self._is_index_reliable:
            self.found.note(
                NoteKind.NOT_COMPARED,
                "segments and Lucene are not compared with the index buckets, because some of those are faulty",
            )
        groups = GroupReader(
            self.store,
            self.layout.shard,
            self.layout.groups,
            self.layout.policy.flush_interval,
            self.scope.samples,
            self.found,
            self.counts,
        )
        reader = self._reader
        check = ActivityCheck(known, self.found, reader.name)
        lost = LostKeys(known, self._damaged, self._salvaged)
        reports_loss = bool(self._damaged or self._salvaged) and self._are_keys_reliable
        bucket, activity = None, None
        for row in sorted(self._rows, key=lambda row: (row.bucket, row.group)):
            if row.bucket != bucket:
                bucket, activity = row.bucket, self._activity(row.bucket, known)
            faults = len(self.found.found)
            series = groups.read(row)
            if self.expiry.may_have_expired(row.data_expires):
                # It may have expired while it was read.
                del self.found.found[faults:]
            elif series is not None:
                if activity is not None:
                    check.compare(activity, row.group, series)
                if reports_loss:
                    lost.take(row.bucket, series)
            self._report_progress()
        if reports_loss:
            lost.report(self.found)

    def _activity(self, bucket: int, known: KnownKeys) -> Activity | None:
        row = self._index_rows.get(bucket)
        if not self._is_index_reliable or row is None or row.superseded:
            return None
        try:
            stored = self._reader.read(bucket)
        except BucketDamaged as error:
            # It was intact at the first read.
            self.found.add(FindingKind.INDEX_DAMAGED, error.message, bucket=bucket)
            return None
        if stored is None:
            return None
        # A group's row may outlive its bucket's cut row, which records whether a loss was accepted.
        cut = next((cut for cut in self.manifest.cuts if cut.bucket == bucket), None)
        is_lossy = cut is None or cut.lost_to is not None
        return Activity.of(
            stored,
            known,
            self.layout.groups,
            is_lossy=is_lossy,
            is_salvaged=bucket in self._salvaged,
            has_starts=bucket < min(self._salvaged, default=bucket + 1),
        )

    def _report_progress(self) -> None:
        self._done += 1
        self.on_progress(self._done, len(self._index_rows) + len(self._rows))
