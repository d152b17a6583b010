"""Translates Java's exceptions into errors with a remedy."""

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from strandline.disk import NO_SPACE, DiskFull
from strandline.errors import Fatal
from strandline.index.documents import MalformedBatch
from strandline.index.pylucene.classes import JavaThrowable, java
from strandline.index.vm import attach_thread


class LuceneFailed(Fatal):
    """An unexpected failure of Lucene; the Java stack trace is this error's cause."""


class IndexDamaged(Fatal):
    """The index in the folder is incomplete, damaged, or of another version of Lucene."""


class IndexInUse(Fatal):
    """Another writer has the folder open."""


class IndexClosed(Fatal):
    """The index was closed, by its owner or by Lucene after a failure."""


class InvalidRegex(Fatal):
    """Not an RE2 expression."""


class RegexTooCostly(Fatal):
    """Matching an expression would exceed the budget. `examined_terms` and `elapsed_ms` are the work that was done."""

    def __init__(self, reason: str, examined_terms: int, elapsed_ms: int) -> None:
        super().__init__(
            f"the regular expression is too costly: {reason} (gave up after {examined_terms} terms, {elapsed_ms} ms)",
            remedy="Start it with plain text, or list the values",
        )
        self.examined_terms = examined_terms
        self.elapsed_ms = elapsed_ms


class _JavaFailures:
    """A class instead of a generator, and one object for all calls that only read, because a search takes
    microseconds.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        # Raises before anything inside is done, if the JVM can't be called from here.
        attach_thread()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and isinstance(error, java().error):
            # JCC leaves the arguments empty if it could not get the exception.
            if not error.args:
                raise LuceneFailed("Java failed without an error message") from error
            raise _translate(error.args[0], self._folder) from error


_JAVA_FAILURES = _JavaFailures()


def java_failures(folder: Path | None = None) -> AbstractContextManager[None]:
    """Translate the exceptions of the Java calls inside. `folder` is where they write, for `DiskFull`."""
    return _JavaFailures(folder) if folder is not None else _JAVA_FAILURES


def _translate(thrown: JavaThrowable, folder: Path | None) -> Fatal:
    name = thrown.getClass().getName()
    message = thrown.getMessage() or name
    if _is_disk_full(thrown):
        return DiskFull(folder)
    if name == "org.strandline.index.MalformedBatchException":
        malformed = java().malformed_batch(thrown)
        return MalformedBatch(message, document=malformed.getDocument(), position=malformed.getPosition())
    if name == "org.strandline.index.RegexTooCostlyException":
        costly = java().regex_too_costly(thrown)
        return RegexTooCostly(message, costly.getExaminedTerms(), costly.getElapsedMillis())
    for kind, names, meaning, remedy in _MEANINGS:
        if name in names:
            return kind(f"{meaning}: {message}", remedy=remedy)
    return LuceneFailed(f"Lucene failed with {name}: {message}")


def _is_disk_full(thrown: JavaThrowable) -> bool:
    """Whether an exception is caused by a full disk: Lucene then closes its writer, possibly in a merge thread, and all
    later calls fail with that cause.
    """
    cause: JavaThrowable | None = thrown
    while cause is not None:
        if any(text in (cause.getMessage() or "") for text in NO_SPACE):
            return True
        cause = cause.getCause()
    return False


_MEANINGS: tuple[tuple[type[Fatal], frozenset[str], str, str], ...] = (
    (
        InvalidRegex,
        frozenset({"com.google.re2j.PatternSyntaxException"}),
        "not a regular expression",
        "Expressions have RE2's syntax",
    ),
    (
        IndexInUse,
        frozenset({"org.apache.lucene.store.LockObtainFailedException"}),
        "the index is in use",
        "Close it where it is open",
    ),
    (
        IndexClosed,
        frozenset({"org.apache.lucene.store.AlreadyClosedException"}),
        "the index is closed",
        "Open it again",
    ),
    (
        IndexDamaged,
        frozenset(
            {
                "org.apache.lucene.index.CorruptIndexException",
                "org.apache.lucene.index.IndexFormatTooNewException",
                "org.apache.lucene.index.IndexFormatTooOldException",
                "org.apache.lucene.index.IndexNotFoundException",
                "java.io.EOFException",
                "java.io.FileNotFoundException",
                "java.nio.file.NoSuchFileException",
            }
        ),
        "the index is damaged",
        "Remove its folder and build it again",
    ),
)
