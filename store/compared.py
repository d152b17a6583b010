"""Rows that only compare-and-sets change, in every store: replay jobs, bulk jobs and their parts."""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.protocol import StoreRefused

MAX_TEXT_BYTES: Final = 64 * 1024
"""So much a text of a bulk job or part may have, in UTF-8: rows are read many at a time."""

# A character has at most four bytes.
_MAX_BYTES_PER_CHARACTER: Final = 4

P = TypeVar("P", bound="ComparedRow")


class ComparedRow(Protocol):
    """A row of such a table."""

    @property
    def primary_key(self) -> tuple[object, ...]:
        """The key: first the columns that all rows of a partition share, then the one that tells them apart."""
        ...

    @property
    def compared(self) -> tuple[object, ...]:
        """What must be as it was seen for a change to be made."""
        ...

    @property
    def life(self) -> int:
        """How long it lives from a write on, in milliseconds."""
        ...

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...


def require_same_key(before: ComparedRow, after: ComparedRow) -> None:
    """Raise `ValueError` for a row that was to be replaced by one of another primary_key."""
    if before.primary_key != after.primary_key:
        raise ValueError(f"{before.name} was to be replaced by {after.name}")


def require_later_version(before: BulkJob, after: BulkJob) -> None:
    """Raise `ValueError` for a change of a bulk job that does not raise its version: a second change from the same
    state would not be noticed.
    """
    if after.version <= before.version:
        raise ValueError(f"{before.name} of version {before.version} was to be replaced by version {after.version}")


def require_parts_of_one_job(parts: Sequence[BulkPart]) -> None:
    """Raise `ValueError` unless parts are of one job, each of them once."""
    if len({part.primary_key[:-1] for part in parts}) > 1:
        raise ValueError(f"{parts[0].name} was to be changed together with parts of another job")
    if len({part.part for part in parts}) < len(parts):
        raise ValueError(f"{parts[0].name} was to be changed together with parts of which one was given twice")


def require_bounded(row: BulkJob | BulkPart) -> None:
    """Raise `StoreRefused` for a row with a text that is too long."""
    for column in row.__slots__:
        text = getattr(row, column)
        if not isinstance(text, str) or _MAX_BYTES_PER_CHARACTER * len(text) <= MAX_TEXT_BYTES:
            continue
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_TEXT_BYTES:
            raise StoreRefused(
                f"{column} of {row.name} has {size} bytes, and at most {MAX_TEXT_BYTES} can be stored",
                remedy="Divide the work into more parts or jobs, or say less in it",
            )
