"""How a start handles a damaged index bucket.

The readable parts are used. If Kafka still has the bucket's records, they are read again, by a rewind to the bucket. If
not, an operator has to accept the loss, which is counted first (`index_loss.py`). Then the readable parts are stored in
its place, so that the next start finds the bucket undamaged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from strandline.errors import ExitCode, Fatal
from strandline.index.bucket_codec import BucketDamaged, Salvaged, StoredBucket, decode_bucket, salvage_bucket
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.key_table import KeyTable
from strandline.node.shard.index_loss import IndexLoss, LossSurvey
from strandline.node.shard.manifest_view import ManifestView
from strandline.node.shard.ownership import attempt_prefix
from strandline.node.shard.parts import ShardParts
from strandline.recovery.checkpoints import designated_group, index_rows
from strandline.recovery.cutting import Cutting
from strandline.recovery.keyless_series import salvage_attempt
from strandline.recovery.offset_policy import Accepted, LogState
from strandline.recovery.rewinding import ToBucket, mark_superseded, plan_rewind
from strandline.store.rows import GroupRow, IndexBucketOf, IndexBucketRows, Lifetime, ManifestWrite, Ownership

_LOG = structlog.get_logger(__name__)


class IndexBucketLost(Fatal):
    """An index bucket is damaged, and its records are no longer in Kafka."""

    exit_code = ExitCode.DATA_LOST


class RereadNeeded(Exception):  # noqa: N818 - not an error: the start continues from an earlier bucket
    """A start has to restart from a bucket whose index is damaged."""

    def __init__(self, bucket: int) -> None:
        super().__init__(f"bucket {bucket} must be read again")
        self.bucket = bucket


@dataclass(slots=True)
class IndexRepair:
    """Repairs damaged index buckets of one shard. `on_progress` is called during long work. `copy` is the local copy
    that is loaded with the buckets: the keys in it are not lost.
    """

    parts: ShardParts
    ownership: Ownership
    view: ManifestView
    accepted: Accepted
    on_progress: Callable[[], None]
    copy: CutSnapshot | None = None
    _loss: IndexLoss | None = None

    def read(self, row: GroupRow, index: IndexBucketRows, data: Sequence[bytes]) -> StoredBucket:
        """The index bucket that a row references. If it is damaged, raises `RereadNeeded` if Kafka still has its
        records, and otherwise `IndexBucketLost`, unless an operator has accepted the loss.
        """
        try:
            return decode_bucket(row.bucket, data, index.rows, index.checksum)
        except BucketDamaged as error:
            salvaged = salvage_bucket(row.bucket, data)
            if row.superseded:
                # It will be written again. Its readable parts still have keys and ids.
                _LOG.warning("a superseded index bucket is damaged", shard=self._shard, error=str(error))
                return salvaged.bucket
            if self._is_in_log(row.bucket):
                raise RereadNeeded(row.bucket) from error
            if self._loss is None:
                self._loss = self._counted_loss(row.bucket)
            if not self.accepted.index_loss:
                raise self._lost(salvaged, error, self._loss) from error
            self._store_salvaged(row, salvaged)
            return salvaged.bucket

    def rewind_to(self, bucket: int) -> None:
        """Rewind the shard to a bucket."""
        options = self.parts.options
        cutting = Cutting(options.policy.flush_interval, options.grace)
        plan = plan_rewind(
            options.shard, self.view.rows(), ToBucket(bucket), self._log(), groups=options.groups, cutting=cutting
        )
        _LOG.warning(
            "an index bucket is damaged, reading its records again",
            shard=self._shard,
            bucket=bucket,
            offset=plan.offset,
            records=plan.records,
        )
        mark_superseded(self.parts.store, self.ownership, plan, self.parts.clock, self.parts.present)

    def _is_in_log(self, bucket: int) -> bool:
        done = self.view.progress()
        cut = next((one for one in done.cuts if one.bucket == bucket), None) if done is not None else None
        return cut is not None and not cut.reset and cut.start >= self._log().start

    def _log(self) -> LogState:
        ends = self.parts.log.ends()
        return LogState(self.parts.log.topic_id(), ends.start, ends.last_stable)

    def _counted_loss(self, newest: int) -> IndexLoss:
        """Count what is lost with the damaged buckets. `newest` is the first one that was found."""
        options, now = self.parts.options, self.parts.present.now_ms()
        rows, designated = self.view.rows(), designated_group(self.parts.options.shard, self.parts.options.groups)
        known, copied = KeyTable(), -1
        if self.copy is not None:
            keys, copied = self.copy.keys.take(self.copy.keys.present()), self.copy.bucket
            known.insert(keys.key_low, keys.key_high, keys.part_id)
        # Buckets that the copy covers are not read from the store. The found bucket counts as damaged, expired or not.
        named = [
            row
            for row in index_rows(rows, designated, now=0)
            if row.bucket == newest or (row.data_expires > now and (row.bucket > copied or row.superseded))
        ]
        loss = LossSurvey(self.parts.store, options.shard, self.on_progress).of(named, rows.groups, known)
        _LOG.warning(
            "index buckets are damaged that Kafka can't restore",
            shard=self._shard,
            buckets=len(loss.buckets),
            newest=loss.buckets[0],
            oldest=loss.buckets[-1],
            series_without_key=loss.unnamed.series,
            samples_without_key=loss.unnamed.samples,
            least_time=loss.unnamed.least_time,
            greatest_time=loss.unnamed.greatest_time,
        )
        return loss

    def _lost(self, salvaged: Salvaged, error: BucketDamaged, loss: IndexLoss) -> IndexBucketLost:
        lost = salvaged.lost_records
        keys = "an unknown number of keys" if lost is None else f"the records of {lost} keys"
        return IndexBucketLost(
            f"shard {self._shard}: {error.message}, and Kafka no longer has its records. In this bucket, {keys} can't "
            f"be read. {loss}",
            remedy="Restore the table index_buckets from a backup, or start the shard with --accept-index-loss",
        )

    def _store_salvaged(self, row: GroupRow, salvaged: Salvaged) -> None:
        options, present = self.parts.options, self.parts.present.now_ms()
        attempt = salvage_attempt(attempt_prefix(self.ownership), row.bucket)
        # It expires when the row says, by the present.
        lifetime = Lifetime(max(1_000, row.data_expires - present), row.data_expires)
        where = IndexBucketOf(options.shard, row.bucket, attempt)
        self.parts.store.write_index_bucket(where, salvaged.encoded.rows, lifetime)
        index = IndexBucketRows(len(salvaged.encoded.rows), salvaged.encoded.checksum, attempt)
        write = ManifestWrite(groups=(replace(row, index=index),), present=present)
        self.parts.store.commit(self.ownership, write)
        self.view.committed(write)
        _LOG.warning(
            "the loss of an index bucket was accepted",
            shard=self._shard,
            bucket=row.bucket,
            lost_records=salvaged.lost_records,
        )

    @property
    def _shard(self) -> str:
        return str(self.parts.options.shard)
