"""What Java's exceptions mean here: each becomes an error of ours that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.errors import Fatal
from strandline.index.documents import MalformedBatch
from strandline.index.pylucene.classes import JavaThrowable, java


class LuceneFailed(Fatal):
    """Lucene failed in a way that nothing here expects; the Java stack trace is this error's cause."""


class IndexDamaged(Fatal):
    """The index in the folder is not whole, or of another version of Lucene."""


class IndexInUse(Fatal):
    """Another writer has the folder."""


class IndexClosed(Fatal):
    """The index was closed, by its owner or by Lucene after a failure."""


class InvalidRegex(Fatal):
    """Not an RE2 expression."""


class RegexTooCostly(Fatal):
    """An expression takes more work than is allowed. `examined_terms` and `elapsed_ms` say how far it came."""

    def __init__(self, reason: str, examined_terms: int, elapsed_ms: int) -> None:
        super().__init__(
            f"the regular expression is too costly: {reason} (gave up after {examined_terms} terms, {elapsed_ms} ms)",
            remedy="Start it with plain text, or list the values",
        )
        self.examined_terms = examined_terms
        self.elapsed_ms = elapsed_ms


@contextmanager
def java_failures() -> Iterator[None]:
    """Turn the exceptions of the Java calls inside into our errors."""
    classes = java()
    try:
        yield
    except classes.error as error:
        raise _translate(error.args[0]) from error


def _translate(thrown: JavaThrowable) -> Fatal:
    name = thrown.getClass().getName()
    message = thrown.getMessage() or name
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
