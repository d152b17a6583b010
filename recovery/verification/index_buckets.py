"""Checks stored index buckets: each exists and is intact, and each of its records is a key under an id, with consistent
times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from strandline.index.bucket_codec import (
    BucketDamaged,
    StoredBucket,
    StoredRecords,
    decode_bucket,
    salvage_bucket,
)
from strandline.index.documents import MalformedBatch, PartKeyBatch, decode_part_key
from strandline.index.new_keys import key_hashes
from strandline.recovery.verification.expiry_horizon import ExpiryHorizon
from strandline.recovery.verification.findings import Counts, FindingKind, Findings, with_first
from strandline.recovery.verification.kernels.part_keys import mark_malformed
from strandline.store.protocol import Store
from strandline.store.rows import GroupRow, IndexBucketOf, ShardId

Mask = npt.NDArray[np.bool_]
_MAX_NAME_CHARS = 300


@dataclass(slots=True)
class BucketReader:
    """Reads the index buckets that rows of the manifest reference."""

    store: Store
    shard: ShardId
    expiry: ExpiryHorizon
    rows: Mapping[int, GroupRow]
    _newest: StoredBucket | None = field(default=None)

    def read(self, bucket: int, counts: Counts | None = None) -> StoredBucket | None:
        """A bucket; None if it may have expired meanwhile. Raises `BucketDamaged`."""
        row = self.rows[bucket]
        if row.index is None:
            return None
        data = self._rows_of(bucket, row.index.attempt)
        if self.expiry.may_have_expired(row.data_expires):
            return None
        if counts is not None:
            counts.index_buckets += 1
            counts.index_bytes += sum(map(len, data))
        return decode_bucket(bucket, data, row.index.rows, row.index.checksum)

    def salvage(self, bucket: int) -> StoredBucket:
        """The readable part of a damaged bucket."""
        index = self.rows[bucket].index
        return salvage_bucket(bucket, self._rows_of(bucket, index.attempt) if index is not None else ()).bucket

    def name(self, bucket: int, part_id: int) -> str:
        """A description of a key whose record is in a bucket: its labels, if they can be read."""
        if self._newest is None or self._newest.bucket != bucket:
            try:
                self._newest = self.read(bucket)
            except BucketDamaged:
                self._newest = None
        if self._newest is not None:
            for records in self._newest.records:
                positions = np.flatnonzero(records.keys.part_ids == part_id)
                if len(positions):
                    return f"{labels_of(records.keys, int(positions[0]))} (part id {part_id})"
        return f"part id {part_id}"

    def _rows_of(self, bucket: int, attempt: str) -> tuple[bytes, ...]:
        return tuple(self.store.index_bucket(IndexBucketOf(self.shard, bucket, attempt)))


def check_bucket(stored: StoredBucket, found: Findings) -> bool:
    """Report the faults inside a bucket; return whether its keys and ids can be relied on."""
    before = len(found.found)
    _check_order(stored, found)
    for records in stored.records:
        malformed = malformed_keys(records.keys)
        _report(
            stored.bucket,
            records,
            malformed,
            FindingKind.KEY_MALFORMED,
            "have labels that are not in canonical form",
            found=found,
        )
        # Malformed keys can't be hashed.
        differing = np.zeros(len(malformed), dtype=np.bool_)
        differing[~malformed] = differing_hashes(records.keys.take(np.flatnonzero(~malformed)))
        _report(
            stored.bucket,
            records,
            differing,
            FindingKind.KEY_HASH,
            "have a hash that does not match their labels",
            found=found,
        )
    is_sound = len(found.found) == before
    for records in stored.records:
        _report(
            stored.bucket,
            records,
            records.start > records.end,
            FindingKind.RECORD_TIMES,
            "end before they start",
            found=found,
        )
    return is_sound


def malformed_keys(keys: PartKeyBatch) -> Mask:
    """Which part keys are not label sets."""
    malformed = np.empty(len(keys), dtype=np.bool_)
    mark_malformed(keys.keys, keys.offsets.astype(np.int64), malformed)
    return malformed


def differing_hashes(keys: PartKeyBatch) -> Mask:
    """Which part keys, all of them label sets, have a hash that differs from the stored one."""
    low, high = key_hashes(keys.keys, keys.offsets.astype(np.int64))
    differing: Mask = (low != keys.key_hashes[:, 0]) | (high != keys.key_hashes[:, 1])
    return differing


def labels_of(keys: PartKeyBatch, position: int) -> str:
    """One key in PromQL's notation, truncated if it is very long."""
    try:
        labels = decode_part_key(keys.part_key(position))
    except (ValueError, MalformedBatch):
        return "a key that can't be read"
    metric = labels.pop("__name__", "")
    text = metric + "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
    return text if len(text) <= _MAX_NAME_CHARS else text[:_MAX_NAME_CHARS] + "..."


def _check_order(stored: StoredBucket, found: Findings) -> None:
    ids: Sequence[npt.NDArray[np.uint32]] = [records.keys.part_ids for records in stored.records]
    for what, column in (("records", np.concatenate(ids) if ids else None), ("active", stored.active_ids)):
        if column is not None and (column[1:] <= column[:-1]).any():
            position = int(np.argmax(column[1:] <= column[:-1]))
            found.add(
                FindingKind.RECORD_ORDER,
                f"the {what} of index bucket {stored.bucket} have part id"
                f" {column[position + 1]} after {column[position]}",
                bucket=stored.bucket,
            )


def _report(bucket: int, records: StoredRecords, which: Mask, kind: FindingKind, what: str, *, found: Findings) -> None:
    number = int(np.count_nonzero(which))
    if number:
        position = int(np.argmax(which))
        found.add(
            kind,
            with_first(
                f"records of index bucket {bucket} that {what}",
                number,
                f"that of {labels_of(records.keys, position)}, part id {records.keys.part_ids[position]}",
            ),
            bucket=bucket,
        )
