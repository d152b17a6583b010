"""A shard's index with the folder of its local copy, as its owner has them, with short methods."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from strandline.index.bucket_codec import StoredBucket, decode_bucket
from strandline.index.bucket_load import load_index
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.documents import decode_part_key
from strandline.index.key_documents import LuceneDocuments
from strandline.index.local_copy import CopyIdentity, CopyUnusable, lucene_folder, open_copy, save_copy
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.policy import BucketPolicy
from strandline.index.pylucene.queries import everything
from strandline.index.shard_index import ShardIndex
from strandline.index.time_bucket import FrozenBucket
from strandline.wire.encoding import Series
from support.records import decoded

HOUR = 3_600_000
FIRST = 1_000
POLICY = BucketPolicy(flush_interval=HOUR, retention=3 * HOUR, margin=4 * HOUR, stale_after=HOUR)


def identity(bucket: int = FIRST) -> CopyIdentity:
    return CopyIdentity("metrics", "topic-1", 3, bucket, f"owner/7/{bucket}")


class Shard:
    """A shard's index with its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lucene = PartKeyIndex.open(lucene_folder(folder))
        self.index = ShardIndex(
            POLICY, LuceneDocuments(self.lucene), open_bucket=FIRST, next_part_id=0, series_limit=1000
        )
        self.expiry: dict[int, int] = {}

    def reopen(self, bucket: int = FIRST, policy: BucketPolicy = POLICY, newer: Sequence[StoredBucket] = ()) -> None:
        """Crash, and continue from the copy and newer buckets, newest first."""
        self.lucene.close()
        self.lucene, copy = open_copy(self.folder, identity(bucket), policy.retention, ram_buffer_mb=1)
        self.index = load_index(
            policy,
            LuceneDocuments(self.lucene),
            newer,
            self.expiry,
            open_bucket=bucket + len(newer) + 1,
            next_part_id=self.index.next_part_id if newer else copy.next_part_id,
            series_limit=1000,
            copy=copy,
        )

    def take(self, *names: str, late: int = 0) -> None:
        """Take a sample for each of these keys, at the start of the open bucket's hour or some hours earlier."""
        time = (self.index.open.bucket - late) * HOUR
        series = [Series([("__name__", "m"), ("name", name)], [(time, 1.0)]) for name in names]
        self.index.take(decoded(series))

    def cut(self) -> tuple[FrozenBucket, CutSnapshot]:
        return self.index.cut(), self.index.snapshot()

    def store(self, frozen: FrozenBucket) -> None:
        self.index.encode(frozen)
        self.expiry[frozen.bucket] = POLICY.expected_expiry(frozen.bucket)
        self.index.stored(frozen, self.expiry[frozen.bucket])

    def save(self, snapshot: CutSnapshot) -> None:
        save_copy(self.folder, self.lucene, snapshot, identity(snapshot.bucket))

    def pass_an_hour(self) -> None:
        frozen, snapshot = self.cut()
        self.store(frozen)
        self.save(snapshot)

    def next_bucket(self, *names: str) -> StoredBucket:
        """Store a bucket with a sample of each of these keys, without saving a copy."""
        self.take(*names)
        frozen = self.index.cut()
        encoded = self.index.encode(frozen)
        self.store(frozen)
        return decode_bucket(frozen.bucket, encoded.rows, len(encoded.rows), encoded.checksum)

    def documents(self) -> dict[int, str]:
        return documents_of(self.lucene)

    def state(self) -> dict[str, object]:
        """The complete state of the index, by part id."""
        keys = self.index.columns.rows
        keys = keys.take(keys.present())
        names = ("part_id", "start", "last", "end", "newest", "active_in", "metric", "key_low", "key_high")
        rows = zip(*(getattr(keys, name).tolist() for name in names), strict=True)
        low, high, places = self.index.table.dump()
        part_ids = self.index.columns.rows.part_id[places]
        kept = range(FIRST, self.index.open.bucket)
        return {
            "columns": list(rows),
            "table": sorted(zip(part_ids.tolist(), low.tolist(), high.tolist(), strict=True)),
            "active": {bucket: self.index.active_in(bucket) for bucket in kept},
            "open": (self.index.open.bucket, self.index.open.changed, self.index.open.active),
            "next": self.index.next_part_id,
        }


def refused(folder: Path, expected: CopyIdentity | None = None, policy: BucketPolicy = POLICY) -> str:
    """The reason why a copy can't be used."""
    with pytest.raises(CopyUnusable) as caught:
        open_copy(folder, expected or identity(), policy.retention)
    return caught.value.reason


def opened(folder: Path, expected: CopyIdentity) -> dict[int, str]:
    """The documents of a copy, which must be usable."""
    lucene, _ = open_copy(folder, expected, POLICY.retention)
    with lucene:
        return documents_of(lucene)


def documents_of(lucene: PartKeyIndex) -> dict[int, str]:
    """The name of each document's key, by part id. Fails if an id has two."""
    lucene.refresh()
    batch = lucene.part_keys(everything())
    names = [decode_part_key(batch.part_key(place))["name"] for place in range(len(batch))]
    assert len(set(batch.part_ids.tolist())) == len(names)
    return dict(zip(batch.part_ids.tolist(), names, strict=True))


def files_of(folder: Path) -> list[Path]:
    # Lucene's lock file is empty; opening it in this process would release the lock.
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "write.lock")
