"""Determines from where a start would load a shard's index."""

from collections.abc import Sequence
from pathlib import Path

from strandline.index.local_copy import CopyIdentity, CopyUnusable, lucene_folder, saved_identity
from strandline.index.pylucene.failures import IndexInUse
from strandline.index.vm import start_vm
from strandline.recovery.estimates import IndexSource
from strandline.store.rows import GroupRow, ShardId


def index_source(
    shard: ShardId, folder: Path, topic_id: str, index_rows: Sequence[GroupRow], *, heap_mb: int
) -> IndexSource:
    """The local copy if the manifest references its bucket and attempt; else the stored buckets, if there are any.

    Relies on the copy's saved identity. Its files are only checked when they are opened.
    """
    if lucene_folder(folder).is_dir():
        start_vm(heap_mb)
        try:
            if is_in_manifest(saved_identity(folder), shard, topic_id, index_rows):
                return IndexSource.LOCAL_COPY
        except IndexInUse:
            return IndexSource.IN_USE
        except CopyUnusable:
            pass
    return IndexSource.BUCKETS if index_rows else IndexSource.REPLAY


def is_in_manifest(copy: CopyIdentity, shard: ShardId, topic_id: str, index_rows: Sequence[GroupRow]) -> bool:
    """Whether the manifest references a copy's bucket and attempt."""
    named = {row.bucket: row.index.attempt for row in index_rows if row.index is not None and not row.superseded}
    return copy == CopyIdentity(shard.dataset, topic_id, shard.shard, copy.bucket, named.get(copy.bucket, ""))
