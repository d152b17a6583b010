"""Random histories of a shard's index on a real Lucene that crashes and continues from its local copy, compared with a
model.

After a bucket is stored its copy is saved, unless the crash comes in between: then the copy is of an older bucket than
the newest stored one, and the newer buckets are applied onto it. Without a copy the index is loaded from the buckets.
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
    saved_identity,
)
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import everything
from strandline.index.shard_index import ShardIndex
from strandline.index.time_bucket import FrozenBucket
from strandline.index.vm import start_vm
from support.index_history import IndexBesideModel, Stored, load_stored

pytestmark = pytest.mark.simulation


class RestartFromLocalCopy(IndexBesideModel):
    lucene: PartKeyIndex | None = None

    def __init__(self) -> None:
        super().__init__()
        start_vm()
        self.folder = Path(tempfile.mkdtemp(prefix="local-copy-"))
        self.snapshots: dict[int, CutSnapshot] = {}
        self.copy_of: int | None = None  # The bucket of which a valid copy was saved.

    def teardown(self) -> None:
        self.close()
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """Commits nothing: the same as a crash."""
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
            self.snapshots = {bucket: snapshot for bucket, snapshot in self.snapshots.items() if bucket > stored}

    @rule()
    def a_bucket_is_stored_and_a_crash_comes_before_its_copy(self) -> None:
        super().the_oldest_bucket_is_stored()
        self.a_crash()

    @rule()
    def documents_are_merged(self) -> None:
        """In the background, so that the next step runs concurrently or afterwards."""
        if self.lucene is not None:
            self.lucene.merge(1)

    def restored_index(self, newest: Stored | None) -> ShardIndex:
        self.close()
        try:
            found = saved_identity(self.folder)
        except CopyUnusable:
            found = None
        assert (found.bucket if found else None) == self.copy_of, "a valid copy was not recognised"
        if found is None or found.bucket not in self.store:
            return super().restored_index(newest)
        self.lucene, copy = open_copy(self.folder, found, self.policy.retention, ram_buffer_mb=1)
        self.documents = LuceneDocuments(self.lucene)
        index = load_stored(self, newest, copy)
        keys = index.columns.rows
        self.lucene.refresh()
        assert saved_documents(self.lucene) == set(keys.part_id[keys.present()].tolist())
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
