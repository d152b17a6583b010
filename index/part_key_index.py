"""The Lucene index of one shard's part keys: a thin wrapper around Lucene, and the only writer of its folder.

Documents never change. The mutable properties of a key (start, end, last sample) are stored elsewhere, by part id. So
there are only additions, deletions and searches.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from strandline.disk import raising_disk_full
from strandline.index.cardinality import DEFAULT_LIMIT, METRIC_NAME, Cardinality, ValueCardinality, unpack_values
from strandline.index.documents import KeyList, PartKeyBatch, TermCounts, unpack_ids_and_hashes
from strandline.index.part_memory import PartMemory
from strandline.index.pylucene.classes import (
    IndexSearcher,
    IndexWriter,
    LookupServer,
    Query,
    SearcherManager,
    java,
    strings_of,
)
from strandline.index.pylucene.failures import java_failures
from strandline.index.pylucene.queries import part_id_in
from strandline.index.vm import to_java, to_python

DEFAULT_RAM_BUFFER_MB = 64
_NO_LIMIT = 2**31 - 1


class PartKeyIndex:
    """An open index. Thread-safe, once the JVM runs.

    Additions and deletions are visible after `refresh`, and durable after `commit`. Closing does not commit, because
    only the owner can write the commit's user data, which describes its content.
    """

    def __init__(self, folder: Path, writer: IndexWriter, searchers: SearcherManager) -> None:
        self._folder = folder
        self._writer = writer
        self._searchers = searchers
        self._lookup = java().key_lookup
        self._commit_lock = threading.Lock()
        self.refreshes = 0
        """The number of refreshes. Any thread may read it."""
        self.additions = 0
        """The number of documents that were added since the index was opened."""

    @classmethod
    def open(cls, folder: Path, *, ram_buffer_mb: float = DEFAULT_RAM_BUFFER_MB) -> Self:
        """Open the index in a folder as of its last commit, or an empty one if the folder has none.

        Up to `ram_buffer_mb` of new documents are kept in the Java heap before Lucene writes them as a segment. Raises
        `IndexInUse` if the folder is already open, in this or another process, and `IndexDamaged` if its content can't
        be opened; damage inside of files may remain undetected. All methods that write raise `DiskFull`.
        """
        classes = java()
        with raising_disk_full(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with java_failures(folder):
            config = classes.writer_config().setRAMBufferSizeMB(float(ram_buffer_mb))
            # Compound files would be a second copy of each new segment.
            config = config.setUseCompoundFile(False).setCommitOnClose(False)
            writer = classes.writer(classes.open_directory(str(folder.absolute())), config)
            try:
                searchers = classes.searcher_manager(writer, True, False, classes.searcher_factory())
            except BaseException:
                # The writer opens without reading the segments. If it stayed open, it would keep the folder locked.
                writer.close()
                raise
        return cls(folder, writer, searchers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the index. What was not committed is lost. Closing twice has no effect."""
        with java_failures():
            try:
                self._searchers.close()
            finally:
                self._writer.close()

    def add(self, batch: PartKeyBatch) -> int:
        """Add each part key of a batch as a document; return their number.

        A batch with a malformed key raises `MalformedBatch` and adds none. The caller ensures that ids and keys are
        new. After a failure of Lucene itself, for instance a full disk, part of the batch may have been added: then the
        index must be closed and reopened, as of its last commit.
        """
        classes = java()
        with java_failures(self._folder):
            added = classes.part_key_documents.add(self._writer, to_java(batch.pack()))
        self.additions += added
        return added

    def delete(self, part_ids: BitMap) -> None:
        """Delete the documents with these part ids, some of which may not exist."""
        with java_failures(self._folder):
            self._writer.deleteDocuments(part_id_in(part_ids))

    def refresh(self) -> None:
        """Make all additions and deletions before this call visible to searches."""
        with java_failures(self._folder):
            self._searchers.maybeRefreshBlocking()
        self.refreshes += 1

    def commit(self, user_data: Mapping[str, str]) -> None:
        """Make all additions and deletions before this call durable, with `user_data` as their description."""
        with self._commit_lock, java_failures(self._folder):
            entries = java().hash_map()
            for key, value in user_data.items():
                entries.put(key, value)
            self._writer.setLiveCommitData(entries.entrySet())
            self._writer.commit()

    def is_current(self) -> bool:
        """Whether a refresh would change nothing: nothing was added, deleted or merged since the last one."""
        with java_failures():
            return self._searchers.isSearcherCurrent()

    def segments(self) -> int:
        """The number of segments that searches visit."""
        with self._searcher() as searcher:
            return java().part_key_columns.segments(searcher)

    def merge(self, max_segments: int) -> None:
        """Start merging into this many segments, in the background. Searches use the merged segments after a refresh,
        once the merge is done.
        """
        with java_failures(self._folder):
            self._writer.forceMerge(max_segments, False)

    def user_data(self) -> dict[str, str]:
        """The user data of the last commit: this object's, or the one from which it was opened."""
        with java_failures():
            return strings_of(self._writer.getLiveCommitData())

    def count(self) -> int:
        """The number of part keys that searches see."""
        with self._searcher() as searcher:
            return searcher.getIndexReader().numDocs()

    def search(self, query: Query) -> BitMap:
        """The part ids of the keys that a query matches."""
        with self._searcher() as searcher:
            return BitMap.deserialize(to_python(java().part_id_bitmaps.collect(searcher, query)))

    def part_keys(self, query: Query) -> PartKeyBatch:
        """The ids, hashes and bytes of the keys that a query matches, in the order of Lucene's documents."""
        with self._searcher() as searcher:
            return PartKeyBatch.unpack(to_python(java().part_key_columns.partKeys(searcher, query)))

    def part_keys_up_to(self, query: Query, max_keys: int) -> KeyList | None:
        """The keys that a query matches, or None if there are more than `max_keys`. The search ends as soon as that is
        known.
        """
        with self._searcher() as searcher:
            packed = java().part_key_columns.fewPartKeys(searcher, query, max_keys)
            return KeyList.unpack(to_python(packed)) if packed is not None else None

    def part_keys_with_labels(self, selectors: bytes, max_keys: int) -> KeyList | None:
        """The same for keys whose labels have certain values, packed by `strandline.index.key_lookup`: in a single
        call.
        """
        with java_failures():
            packed = self._lookup.few(self._searchers, to_java(selectors), max_keys)
        return KeyList.unpack(to_python(packed)) if packed is not None else None

    def serve_lookups(self, server: LookupServer, memory: PartMemory) -> None:
        """Have a server of the extension answer lookups from this index, with the keys' times from a memory."""
        with java_failures():
            server.open(self._searchers, memory.path, memory.rows)

    def ids_and_hashes(self) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint64]]]:
        """The part ids and key hashes of all keys, segment by segment, in the order of Lucene's documents."""
        columns = java().part_key_columns
        with self._searcher() as searcher:
            for segment in range(columns.segments(searcher)):
                with java_failures():
                    packed = to_python(columns.idsAndHashes(searcher, segment))
                yield unpack_ids_and_hashes(packed)

    def label_names(
        self, query: Query | None = None, *, prefix: str = "", after: str = "", limit: int = _NO_LIMIT
    ) -> TermCounts:
        """The names of labels, each with the number of keys that have it; of all keys, or of those that a query
        matches.

        Only names that start with `prefix` and come after `after`, the last one of the previous page. Deleted keys, and
        names that only they have, are not included.
        """
        with self._searcher() as searcher:
            return TermCounts.unpack(
                to_python(
                    java().term_counts.names(searcher, query, to_java(prefix.encode()), to_java(after.encode()), limit)
                )
            )

    def label_values(
        self, label: str, query: Query | None = None, *, prefix: str = "", after: str = "", limit: int = _NO_LIMIT
    ) -> TermCounts:
        """The values of a label, each with the number of keys that have it, under the rules of `label_names`."""
        with self._searcher() as searcher:
            return TermCounts.unpack(
                to_python(
                    java().term_counts.values(
                        searcher, query, label, to_java(prefix.encode()), to_java(after.encode()), limit
                    )
                )
            )

    def cardinality(self, query: Query | None = None, *, limit: int = DEFAULT_LIMIT) -> Cardinality:
        """The labels and values with the most series: of all keys, or of those that a query matches.

        The extension visits every value of every label once, and keeps at most `limit` of them.
        """
        with self._searcher() as searcher:
            return Cardinality.unpack(to_python(java().cardinality.labels(searcher, query, METRIC_NAME, limit)))

    def top_values_by_series(
        self, label: str, query: Query | None = None, *, limit: int = DEFAULT_LIMIT
    ) -> list[ValueCardinality]:
        """The values of a label that the most keys have, under the rules of `cardinality`."""
        with self._searcher() as searcher:
            return unpack_values(to_python(java().cardinality.values(searcher, query, label, limit)))

    @contextmanager
    def _searcher(self) -> Iterator[IndexSearcher]:
        """The view of the last refresh, which does not change while it is held."""
        with java_failures():
            searcher = self._searchers.acquire()
            try:
                yield searcher
            finally:
                self._searchers.release(searcher)
