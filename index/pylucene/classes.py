# ruff: noqa: N802 - the methods below have Java's names
"""Lucene's classes and those of our extension, with types for Python's type checker.

PyLucene has no types: a misspelt name would only fail when it is called. This module declares what the index uses of
each class, and `java()` returns the classes themselves, so that all uses are checked.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import NewType, Protocol

from strandline.index.vm import JavaBytes, lucene_module

# Objects that are only passed to other Java calls.
Query = NewType("Query", object)
Directory = NewType("Directory", object)
Occur = NewType("Occur", object)
Term = NewType("Term", object)
BytesRef = NewType("BytesRef", object)
SearcherFactory = NewType("SearcherFactory", object)
Entry = NewType("Entry", object)


class JavaThrowable(Protocol):
    """A Java exception, in PyLucene's JavaError."""

    def getClass(self) -> "JavaClass": ...
    def getMessage(self) -> str | None: ...
    def getCause(self) -> "JavaThrowable | None": ...


class JavaClass(Protocol):
    """java.lang.Class."""

    def getName(self) -> str: ...


class HashMap(Protocol):
    """java.util.HashMap of strings."""

    def put(self, key: str, value: str) -> object: ...
    def entrySet(self) -> Iterable[Entry]: ...


class MapEntry(Protocol):
    """java.util.Map.Entry. Key and value are Java objects; `str` converts them."""

    def getKey(self) -> object: ...
    def getValue(self) -> object: ...


class CountingReader(Protocol):
    """A reader's counts of documents."""

    def numDocs(self) -> int: ...
    def numDeletedDocs(self) -> int: ...


class IndexSearcher(Protocol):
    """An immutable view of an index."""

    def getIndexReader(self) -> CountingReader: ...


class IndexWriterConfig(Protocol):
    """The configuration of a writer; each setter returns the configuration itself."""

    def setRAMBufferSizeMB(self, megabytes: float) -> "IndexWriterConfig": ...
    def setUseCompoundFile(self, compound: bool, /) -> "IndexWriterConfig": ...
    def setCommitOnClose(self, commit: bool, /) -> "IndexWriterConfig": ...


class IndexWriter(Protocol):
    """The only writer of a folder."""

    def deleteDocuments(self, query: Query) -> int: ...
    def setLiveCommitData(self, entries: Iterable[Entry]) -> None: ...
    def getLiveCommitData(self) -> Iterable[Entry]: ...
    def commit(self) -> int: ...
    def forceMerge(self, max_segments: int, wait: bool, /) -> None: ...
    def close(self) -> None: ...


class SearcherManager(Protocol):
    """Manages the newest searcher, and those that are still in use."""

    def acquire(self) -> IndexSearcher: ...
    def release(self, searcher: IndexSearcher) -> None: ...
    def maybeRefreshBlocking(self) -> None: ...
    def isSearcherCurrent(self) -> bool: ...
    def close(self) -> None: ...


class BooleanQueryBuilder(Protocol):
    """org.apache.lucene.search.BooleanQuery.Builder."""

    def add(self, query: Query, occur: Occur) -> "BooleanQueryBuilder": ...
    def build(self) -> Query: ...


class PartKeyDocuments(Protocol):
    """Adds documents."""

    def add(self, writer: IndexWriter, batch: JavaBytes) -> int: ...


class PartIdBitmaps(Protocol):
    """Collects matches."""

    def collect(self, searcher: IndexSearcher, query: Query) -> JavaBytes: ...


class PartKeyColumns(Protocol):
    """Reads columns back."""

    def segments(self, searcher: IndexSearcher) -> int: ...
    def idsAndHashes(self, searcher: IndexSearcher, segment: int) -> JavaBytes: ...
    def partKeys(self, searcher: IndexSearcher, query: Query) -> JavaBytes: ...
    def fewPartKeys(self, searcher: IndexSearcher, query: Query, max_segments: int) -> JavaBytes | None: ...


class KeyLookup(Protocol):
    """Finds keys by the values of their labels, in one call."""

    def few(self, searchers: SearcherManager, selectors: JavaBytes, max_segments: int) -> JavaBytes | None: ...


class LookupServer(Protocol):
    """Answers lookups."""

    def open(self, searchers: SearcherManager, file: str, rows: int) -> None: ...
    def shut(self) -> None: ...
    def close(self) -> None: ...


class TermCounts(Protocol):
    """Lists names and values of labels."""

    def names(
        self, searcher: IndexSearcher, query: Query | None, prefix: JavaBytes, after: JavaBytes, limit: int
    ) -> JavaBytes: ...
    def values(  # noqa: PLR0917 - Java has no keywords
        self, searcher: IndexSearcher, query: Query | None, label: str, prefix: JavaBytes, after: JavaBytes, limit: int
    ) -> JavaBytes: ...


class Cardinality(Protocol):
    """Counts labels and their values."""

    def labels(self, searcher: IndexSearcher, query: Query | None, ranked: str, limit: int) -> JavaBytes: ...
    def values(self, searcher: IndexSearcher, query: Query | None, label: str, limit: int) -> JavaBytes: ...


class TermSets(Protocol):
    """Makes queries for lists of values."""

    def anyOf(self, label: str, values: JavaBytes) -> Query: ...


@dataclass(frozen=True, slots=True)
class JavaClasses:
    """The classes, by their use: constructors, or static methods."""

    error: type[Exception]
    open_directory: Callable[[str], Directory]
    hash_map: Callable[[], HashMap]
    map_entry: Callable[[Entry], MapEntry]
    writer: Callable[[Directory, IndexWriterConfig], IndexWriter]
    writer_config: Callable[[], IndexWriterConfig]
    searcher_factory: Callable[[], SearcherFactory]
    searcher_manager: Callable[[IndexWriter, bool, bool, SearcherFactory], SearcherManager]

    bytes_ref: Callable[[JavaBytes], BytesRef]
    term: Callable[[str, BytesRef], Term]
    term_query: Callable[[Term], Query]
    prefix_query: Callable[[Term], Query]
    match_all: Callable[[], Query]
    boolean_query: Callable[[], BooleanQueryBuilder]
    filter: Occur
    should: Occur
    must_not: Occur

    label_prefix: str
    part_key_documents: PartKeyDocuments
    part_id_bitmaps: PartIdBitmaps
    part_key_columns: PartKeyColumns
    key_lookup: KeyLookup
    lookup_server: Callable[[str], LookupServer]
    term_counts: TermCounts
    cardinality: Cardinality
    term_sets: TermSets
    part_id_query: Callable[[JavaBytes], Query]
    has_label_query: Callable[[str], Query]
    regex_query: Callable[[str, str, JavaBytes, int, int], Query]
    malformed_batch: Callable[[JavaThrowable], "MalformedBatchException"]
    regex_too_costly: Callable[[JavaThrowable], "RegexTooCostlyException"]


def strings_of(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the entries of a Java map of strings."""
    pairs = [java().map_entry(entry) for entry in entries]
    return {str(pair.getKey()): str(pair.getValue()) for pair in pairs}


class MalformedBatchException(Protocol):
    """The extension's exception for a malformed batch."""

    def getDocument(self) -> int: ...
    def getPosition(self) -> int: ...


class RegexTooCostlyException(Protocol):
    """The extension's exception for an expression that exceeded its budget."""

    def getExaminedTerms(self) -> int: ...
    def getElapsedMillis(self) -> int: ...


def java() -> JavaClasses:
    """Return the classes, with the JVM running and this thread attached."""
    lucene = lucene_module()
    return _load(lucene.JavaError)


@cache
def _load(error: type[Exception]) -> JavaClasses:
    index = import_module("org.apache.lucene.index")
    search = import_module("org.apache.lucene.search")
    ours = import_module("org.strandline.index")
    util = import_module("java.util")
    fs_directory = import_module("org.apache.lucene.store").FSDirectory
    paths = import_module("java.nio.file").Paths
    return JavaClasses(
        error=error,
        open_directory=lambda folder: fs_directory.open(paths.get(folder)),
        hash_map=util.HashMap,
        map_entry=util.Map.Entry.cast_,
        writer=index.IndexWriter,
        writer_config=index.IndexWriterConfig,
        searcher_factory=search.SearcherFactory,
        searcher_manager=search.SearcherManager,
        bytes_ref=import_module("org.apache.lucene.util").BytesRef,
        term=index.Term,
        term_query=search.TermQuery,
        prefix_query=search.PrefixQuery,
        match_all=search.MatchAllDocsQuery,
        boolean_query=search.BooleanQuery.Builder,
        filter=search.BooleanClause.Occur.FILTER,
        should=search.BooleanClause.Occur.SHOULD,
        must_not=search.BooleanClause.Occur.MUST_NOT,
        label_prefix=ours.Fields.LABEL_PREFIX,
        part_key_documents=ours.PartKeyDocuments,
        part_id_bitmaps=ours.PartIdBitmaps,
        part_key_columns=ours.PartKeyColumns,
        key_lookup=ours.KeyLookup,
        lookup_server=ours.LookupServer,
        term_counts=ours.TermCounts,
        cardinality=ours.Cardinality,
        term_sets=ours.TermSets,
        part_id_query=ours.PartIdQuery,
        has_label_query=ours.HasLabelQuery,
        regex_query=ours.RegexQuery,
        malformed_batch=ours.MalformedBatchException.cast_,
        regex_too_costly=ours.RegexTooCostlyException.cast_,
    )
