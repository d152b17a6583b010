"""Where a running shard's part keys are searched: in Lucene, with a local copy, or in memory in simulations."""

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.idle_merging import IdleMerger
from strandline.index.key_documents import DictDocuments, KeyDocuments, LuceneDocuments
from strandline.index.key_table import KeyTable
from strandline.index.local_copy import (
    CopyIdentity,
    CopyUnusable,
    OpenedCopy,
    discard_copy,
    lucene_folder,
    open_saved,
    save_copy,
)
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.refreshing import BoundedRefresh
from strandline.store.rows import GroupRow, ShardId

_LOG = structlog.get_logger(__name__)
# An index has a hundred files or more, and reports call `disk_bytes` twice a second.
DISK_USAGE_INTERVAL_S = 10.0


@dataclass(frozen=True, slots=True)
class OpenedDocuments:
    """The documents and, if the local copy is usable, its columns and the table of its keys if that was built."""

    documents: KeyDocuments
    copy: CutSnapshot | None
    copy_table: KeyTable | None = None


class IndexStorage(Protocol):
    """Opens a shard's documents at its start, and saves its local copy."""

    def open(self, topic_id: str, index_rows: Sequence[GroupRow]) -> OpenedDocuments:
        """The documents of the local copy, if the manifest references its bucket with its attempt; otherwise none.
        `index_rows` are the manifest's rows that reference index buckets.
        """
        ...

    def save(self, topic_id: str, snapshot: CutSnapshot, attempt: str) -> None:
        """Save a local copy as of a bucket whose index bucket the manifest references with this attempt."""
        ...

    def refresh(self, *, changed: bool, may_merge: bool = False) -> None:
        """Make changes visible to searches within the configured delay. Call it repeatedly. `changed` is whether there
        are new changes. `may_merge` allows merging documents that rarely change.
        """
        ...

    def refresh_now(self) -> None:
        """Make changes visible to searches now."""
        ...

    def refresh_lag(self) -> float:
        """The age in seconds of the oldest change that searches don't see; 0 if there is none. Thread-safe."""
        ...

    def disk_bytes(self) -> int:
        """The size of the documents on disk, at most some seconds old. Any thread may call it."""
        ...

    def close(self) -> None:
        """Release all resources. Closing twice does nothing."""
        ...


@dataclass(slots=True)
class LuceneStorage:
    """A folder with a Lucene index and its columns."""

    shard: ShardId
    folder: Path
    retention: int
    ram_buffer_mb: float
    refresh_s: float
    clock: Clock
    index: PartKeyIndex | None = field(default=None)
    _refreshing: BoundedRefresh | None = field(default=None)
    _merging: IdleMerger | None = field(default=None)
    _opening: Future[OpenedCopy] | None = field(default=None)
    _disk_usage: tuple[float, int] = field(default=(float("-inf"), 0))

    def prepare(self) -> None:
        """Begin to open the local copy in a thread, while the start waits for Kafka and the store. `open` waits for the
        thread, and checks to what the copy belongs. Needs a running JVM, and no other process in the folder.
        """
        threads = ThreadPoolExecutor(1, thread_name_prefix="copy")
        self._opening = threads.submit(self._open_saved)
        threads.shutdown(wait=False)

    def open(self, topic_id: str, index_rows: Sequence[GroupRow]) -> OpenedDocuments:
        opening, self._opening = self._opening, None
        self.close()
        try:
            saved = opening.result() if opening is not None else self._open_saved()
            self.index, copy = self._checked(saved, topic_id, index_rows)
            table: KeyTable | None = saved.table
        except CopyUnusable as error:
            _LOG.info(
                "local copy not usable, loading the index from the store", shard=str(self.shard), reason=error.message
            )
            discard_copy(self.folder)
            self.index, copy = PartKeyIndex.open(lucene_folder(self.folder), ram_buffer_mb=self.ram_buffer_mb), None
            table = None
        self._refreshing = BoundedRefresh(self.index, self.clock, self.refresh_s)
        self._merging = IdleMerger(self.index, self.clock, self._has_room)
        # What the start adds must become visible even if no record arrives.
        self._refreshing.changed()
        return OpenedDocuments(LuceneDocuments(self.index), copy, table)

    def save(self, topic_id: str, snapshot: CutSnapshot, attempt: str) -> None:
        if self.index is None:
            raise ValueError(f"the index of {self.shard} is not open")
        save_copy(self.folder, self.index, snapshot, self._identity(topic_id, snapshot.bucket, attempt))

    def refresh(self, *, changed: bool, may_merge: bool = False) -> None:
        if self._refreshing is not None:
            if changed:
                self._refreshing.changed()
            self._refreshing.refresh_if_due()
        if may_merge and self._merging is not None:
            self._merging.check()

    def refresh_now(self) -> None:
        if self._refreshing is not None:
            self._refreshing.refresh_now()

    def refresh_lag(self) -> float:
        refreshing = self._refreshing
        return refreshing.lag() if refreshing is not None else 0.0

    def disk_bytes(self) -> int:
        asked = self.clock.monotonic()
        measured_at, sizes = self._disk_usage
        if asked - measured_at < DISK_USAGE_INTERVAL_S:
            return sizes
        sizes = 0
        with suppress(FileNotFoundError), os.scandir(lucene_folder(self.folder)) as files:
            for file in files:
                # Lucene may delete files after merging.
                with suppress(FileNotFoundError):
                    sizes += file.stat().st_size
        self._disk_usage = (asked, sizes)
        return sizes

    def _has_room(self) -> bool:
        """Whether the disk has space for a second copy of the documents, and some more."""
        return shutil.disk_usage(self.folder).free > 2 * self.disk_bytes()

    def close(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None and not opening.cancel() and opening.exception() is None:
            opening.result().close()
        if self.index is not None:
            self.index.close()
            self.index = self._refreshing = self._merging = None

    def _open_saved(self) -> OpenedCopy:
        return open_saved(self.folder, ram_buffer_mb=self.ram_buffer_mb)

    def _checked(
        self, saved: OpenedCopy, topic_id: str, index_rows: Sequence[GroupRow]
    ) -> tuple[PartKeyIndex, CutSnapshot]:
        try:
            expected = self._expected(topic_id, saved.identity, index_rows)
        except CopyUnusable:
            saved.close()
            raise
        return saved.verified_as(expected, self.retention)

    def _expected(self, topic_id: str, found: CopyIdentity, index_rows: Sequence[GroupRow]) -> CopyIdentity:
        """The identity that the copy must have: its bucket, with the attempt that the manifest references."""
        named = {row.bucket: row.index.attempt for row in index_rows if row.index is not None and not row.superseded}
        if found.bucket not in named:
            raise CopyUnusable(self.folder, f"the manifest does not reference index bucket {found.bucket}")
        return self._identity(topic_id, found.bucket, named[found.bucket])

    def _identity(self, topic_id: str, bucket: int, attempt: str) -> CopyIdentity:
        return CopyIdentity(self.shard.dataset, topic_id, self.shard.shard, bucket, attempt)


class MemoryStorage:
    """The in-memory implementation, without a local copy: each start loads all buckets from the store."""

    def open(self, *_: object) -> OpenedDocuments:
        return OpenedDocuments(DictDocuments(), None)

    def save(self, *_: object) -> None:
        pass

    def refresh(self, *, changed: bool, may_merge: bool = False) -> None:
        pass

    def refresh_now(self) -> None:
        pass

    def refresh_lag(self) -> float:
        return 0.0

    def disk_bytes(self) -> int:
        return 0

    def close(self) -> None:
        pass
