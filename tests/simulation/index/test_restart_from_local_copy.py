"""Random histories of a shard's index on a real Lucene that crashes and goes on from its local copy, beside a model.

After a bucket is stored its copy is saved, unless the crash comes in between: then the copy is of an older bucket than
the newest stored one, must be refused, and the index is loaded from the buckets instead.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant, rule

from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.key_documents import LuceneDocuments
from strandline.index.local_copy import (
    CopyIdentity,
    CopyUnusable,
    discard_copy,
    lucene_folder,
    open_copy,
    save_copy,
)
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import everything
from strandline.index.shard_index import ShardIndex
from strandline.index.time_bucket import FrozenBucket
from strandline.index.vm import start_vm
from support.index_history import IndexBesideModel, Stored

pytestmark = pytest.mark.simulation


class RestartFromLocalCopy(IndexBesideModel):
    lucene: PartKeyIndex | None = None

    def __init__(self) -> None:
        super().__init__()
        start_vm()
        self.folder = Path(tempfile.mkdtemp(prefix="local-copy-"))
        self.snapshots: dict[int, CutSnapshot] = {}
        self.copy_of: int | None = None  # The bucket that a sound copy was saved of.

    def teardown(self) -> None:
        self.close()
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """Nothing is committed by it: the same as a crash."""
        if self.lucene is not None:
            self.lucene.close()
            self.lucene = None

    def empty_documents(self) -> LuceneDocuments:
        self.close()
        discard_copy(self.folder)
        self.copy_of = None
        self.lucene = PartKeyIndex.open(lucene_folder(self.folder))
        return LuceneDocuments(self.lucene)

    def identity(self, bucket: int) -> CopyIdentity:
        return CopyIdentity("metrics", "topic-1", 3, bucket, f"owner/1/{bucket}")

    def cut_index(self) -> FrozenBucket:
        frozen = super().cut_index()
        self.snapshots[frozen.bucket] = self.index.snapshot()
        return frozen

    @rule()
    def the_oldest_bucket_is_stored(self) -> None:
        newest = max(self.store, default=None)
        super().the_oldest_bucket_is_stored()
        stored = max(self.store, default=None)
        if stored is not None and stored != newest:
            assert self.lucene is not None
            save_copy(self.folder, self.lucene, self.snapshots[stored], self.identity(stored))
            self.copy_of = stored
            self.snapshots = {bucket: one for bucket, one in self.snapshots.items() if bucket > stored}

    @rule()
    def a_bucket_is_stored_and_a_crash_comes_before_its_copy(self) -> None:
        super().the_oldest_bucket_is_stored()
        self.a_crash()

    def restored_index(self, newest: Stored | None) -> ShardIndex:
        self.close()
        bucket = max(self.store, default=-1)
        expiry = {bucket: stored.expires for bucket, stored in self.store.items()}
        try:
            self.lucene, index = open_copy(
                self.folder, self.identity(bucket), self.policy, expiry, series_limit=1000, ram_buffer_mb=1
            )
        except CopyUnusable:
            assert self.copy_of is None or self.copy_of != bucket, "a sound copy of the right bucket was refused"
            return super().restored_index(newest)
        assert self.copy_of == bucket, "a copy of another bucket was taken"
        assert saved_documents(self.lucene) == set(index.table.dump()[2].tolist())
        self.documents = LuceneDocuments(self.lucene)
        return index

    @invariant()
    def no_part_id_has_two_documents(self) -> None:
        if self.lucene is not None:
            self.lucene.refresh()
            assert self.lucene.count() == len(saved_documents(self.lucene))


def saved_documents(index: PartKeyIndex) -> set[int]:
    return set(index.search(everything()))


TestRestartFromLocalCopy = RestartFromLocalCopy.TestCase
TestRestartFromLocalCopy.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
