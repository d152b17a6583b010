"""Translates SQLite's errors into the store's."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from strandline.errors import StrandlineError
from strandline.store.protocol import StoreRefused, StoreUnavailable

# The low byte of SQLite's error code is the kind of failure, the rest is the detail.
_KIND: Final = 0xFF

_Meaning = tuple[type[StoreUnavailable | StoreRefused], str, str]

_BUSY: Final[_Meaning] = (StoreUnavailable, "is locked by another process", "Try again")
_FAULTY: Final[_Meaning] = (StoreUnavailable, "can't be read or written", "Check its disk and the memory")
_NOT_OURS: Final[_Meaning] = (
    StoreRefused,
    "may not be written",
    "Check who owns the file and its folder, and that the disk is not mounted read-only",
)
_UNKNOWN: Final[_Meaning] = (
    StoreRefused,
    "rejected a statement",
    "Report this as a bug: the store and its file don't match",
)
_MEANINGS: Final[dict[int | None, _Meaning]] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: (
        StoreUnavailable,
        "has no space left",
        "Free space on its disk; writing then continues by itself",
    ),
    sqlite3.SQLITE_IOERR: _FAULTY,
    sqlite3.SQLITE_NOMEM: _FAULTY,
    sqlite3.SQLITE_PROTOCOL: _FAULTY,
    sqlite3.SQLITE_READONLY: _NOT_OURS,
    sqlite3.SQLITE_PERM: _NOT_OURS,
    sqlite3.SQLITE_AUTH: _NOT_OURS,
    sqlite3.SQLITE_CANTOPEN: (
        StoreRefused,
        "can't be opened",
        "Check that its folder exists and is writable, and that the path is not a folder",
    ),
    sqlite3.SQLITE_NOTADB: (
        StoreRefused,
        "is not a SQLite file",
        "Use another path; a missing file is created",
    ),
    sqlite3.SQLITE_CORRUPT: (StoreRefused, "is damaged", "Restore a backup, or start with a new file"),
    sqlite3.SQLITE_TOOBIG: (StoreRefused, "can't hold a value this large", "Write smaller rows"),
}


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise the store's error instead of SQLite's, for the file at `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _meaning(error, path) from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise StoreRefused(
            f"a value can't be stored in {path}: {error}",
            remedy="Numbers must fit into 64 bits, and texts must be valid Unicode",
        ) from error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether the file was locked by another connection."""
    return _MEANINGS.get(_kind(error)) is _BUSY


def waited_too_long(path: Path, seconds: float) -> StoreUnavailable:
    """Make the error for a writer whose wait for other writers timed out."""
    return StoreUnavailable(
        f"the store {path} was locked by another writer for {seconds:g} s",
        remedy="Try again; if that fails, look for a process that hangs with the file open",
    )


def _kind(error: sqlite3.Error) -> int | None:
    # Errors that Python's module raises itself have no code.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _KIND


def _meaning(error: sqlite3.Error, path: Path) -> StrandlineError:
    kind, text, remedy = _MEANINGS.get(_kind(error), _UNKNOWN)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return kind(f"the store {path} {text} ({name}: {error})", remedy=remedy)
