"""An in-memory local copy of an index on a host: documents and columns as of a bucket, kept across processes."""

from collections.abc import Sequence

import numpy as np

from strandline.index.cut_snapshot import CutSnapshot, decode_snapshot, encode_snapshot
from strandline.index.key_documents import DictDocuments
from strandline.node.shard.index_storage import OpenedDocuments
from strandline.store.rows import GroupRow


class _Documents(DictDocuments):
    """Documents that can be committed, like Lucene's."""

    def committed(self) -> dict[int, tuple[tuple[int, int], bytes]]:
        return dict(self._keys)

    def restore(self, keys: dict[int, tuple[tuple[int, int], bytes]], next_part_id: int) -> None:
        """Restore the documents of a commit, without part ids that were assigned after the cut of the copy."""
        self._keys = {part_id: key for part_id, key in keys.items() if part_id < next_part_id}


class LocalCopy:
    """The content of a host's folder."""

    def __init__(self) -> None:
        self._saved: tuple[str, str, bytes, dict[int, tuple[tuple[int, int], bytes]]] | None = None

    def discard(self) -> None:
        """Remove the content."""
        self._saved = None

    def save(self, topic_id: str, attempt: str, snapshot: CutSnapshot, documents: _Documents) -> None:
        self._saved = topic_id, attempt, encode_snapshot(snapshot), documents.committed()

    def load(self, topic_id: str, index_rows: Sequence[GroupRow], documents: _Documents) -> CutSnapshot | None:
        """Load the columns if the manifest references their bucket with their attempt, and restore the documents."""
        if self._saved is None:
            return None
        of_topic, attempt, columns, keys = self._saved
        snapshot = decode_snapshot(np.frombuffer(columns, dtype=np.uint8).copy())
        named = {row.bucket: row.index.attempt for row in index_rows if row.index is not None and not row.superseded}
        if of_topic != topic_id or named.get(snapshot.bucket) != attempt:
            self.discard()
            return None
        documents.restore(keys, snapshot.next_part_id)
        return snapshot


class CopyHome:
    """An `IndexStorage` with the copy of its host."""

    def __init__(self, copy: LocalCopy) -> None:
        self._copy, self._documents = copy, _Documents()

    def open(self, topic_id: str, index_rows: Sequence[GroupRow]) -> OpenedDocuments:
        self._documents = _Documents()
        return OpenedDocuments(self._documents, self._copy.load(topic_id, index_rows, self._documents))

    def save(self, topic_id: str, snapshot: CutSnapshot, attempt: str) -> None:
        self._copy.save(topic_id, attempt, snapshot, self._documents)

    def refresh(self, *, changed: bool, may_merge: bool = False) -> None:
        """Does nothing: searches see all changes at once."""

    def refresh_now(self) -> None:
        """Does nothing: searches see all changes at once."""

    def refresh_lag(self) -> float:
        return 0.0

    def disk_bytes(self) -> int:
        return 0

    def close(self) -> None:
        """Does nothing."""
