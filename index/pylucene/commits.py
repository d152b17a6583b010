# ruff: noqa: N802 - the methods below have Java's names
"""The last commit of an index that is not open: its user data, and whether its files are intact."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from strandline.index.pylucene.classes import Directory, Entry, java, strings_of
from strandline.index.pylucene.failures import java_failures


class _Closeable(Protocol):
    def close(self) -> None: ...


class _Status(Protocol):
    """org.apache.lucene.index.CheckIndex.Status."""

    clean: bool


class _CheckIndex(Protocol):
    """org.apache.lucene.index.CheckIndex, which holds the writer's lock until it is closed."""

    def setChecksumsOnly(self, only: bool, /) -> None: ...
    def checkIndex(self) -> _Status: ...
    def close(self) -> None: ...


class _UserData(Protocol):
    """java.util.Map."""

    def entrySet(self) -> Iterable[Entry]: ...


class _IndexCommit(Protocol):
    """org.apache.lucene.index.IndexCommit."""

    def getUserData(self) -> _UserData: ...


@dataclass(frozen=True, slots=True)
class _Classes:
    check_index: Callable[[Directory], _CheckIndex]
    list_commits: Callable[[Directory], Iterable[object]]
    commit: Callable[[object], _IndexCommit]


@cache
def _classes() -> _Classes:
    index = import_module("org.apache.lucene.index")
    return _Classes(index.CheckIndex, index.DirectoryReader.listCommits, index.IndexCommit.cast_)


class LockedIndex:
    """An index that no writer can open while this exists."""

    def __init__(self, directory: Directory, check: _CheckIndex) -> None:
        self._directory = directory
        self._check = check

    def user_data(self) -> dict[str, str]:
        """Return the user data of the last commit. Raises `IndexDamaged` or `LuceneFailed` if it can't be read."""
        with java_failures():
            *_, newest = _classes().list_commits(self._directory)
            return strings_of(_classes().commit(newest).getUserData().entrySet())

    def is_intact(self) -> bool:
        """Whether every file of the last commit exists and matches the checksum that Lucene wrote at its end."""
        with java_failures():
            self._check.setChecksumsOnly(True)
            return self._check.checkIndex().clean


@contextmanager
def locked_index(folder: Path) -> Iterator[LockedIndex]:
    """Lock the index in a folder against writers. Raises `IndexInUse` if one has it open, in this or another
    process.
    """
    classes = java()
    with java_failures():
        directory = classes.open_directory(str(folder.absolute()))
        try:
            check = _classes().check_index(directory)
            try:
                yield LockedIndex(directory, check)
            finally:
                check.close()
        finally:
            cast("_Closeable", directory).close()
