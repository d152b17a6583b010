"""Rows that only compare-and-sets change, in every store: replay jobs, bulk jobs and parts."""

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.protocol import StoreRefused

MAX_TEXT_BYTES: Final = 64 * 1024
"""The limit on a text of a bulk job or part, in UTF-8: many rows are read at a time."""

# UTF-8 uses at most four bytes per character.
_MAX_BYTES_PER_CHARACTER: Final = 4

P = TypeVar("P", bound="ComparedRow")


class ComparedRow(Protocol):
    """A row of such a table."""

    @property
    def primary_key(self) -> tuple[object, ...]:
        """The key: first the columns that all rows of a partition share, then the one that is unique within it."""
        ...

    @property
    def compared(self) -> tuple[object, ...]:
        """The values that must be unchanged for a change to be applied."""
        ...

    @property
    def life(self) -> int:
        """The lifetime in milliseconds, counted from each write."""
        ...

    @property
    def name(self) -> str:
        """The name of the row in messages."""
        ...


def require_same_key(before: ComparedRow, after: ComparedRow) -> None:
    """Raise `ValueError` if a row would be replaced by one with another primary key."""
    if before.primary_key != after.primary_key:
        raise ValueError(f"{before.name} can't be replaced by {after.name}: their keys differ")


def require_later_version(before: BulkJob, after: BulkJob) -> None:
    """Raise `ValueError` if a change of a bulk job does not raise its version: a second change from the same state
    would not be detected.
    """
    if after.version <= before.version:
        raise ValueError(
            f"the version of {before.name} must rise above {before.version}, but the change has version {after.version}"
        )


def require_parts_of_one_job(parts: Sequence[BulkPart]) -> None:
    """Raise `ValueError` unless all parts belong to one job and none is repeated."""
    if len({part.primary_key[:-1] for part in parts}) > 1:
        raise ValueError(f"{parts[0].name} can't be changed together with parts of another job")
    if len({part.part for part in parts}) < len(parts):
        raise ValueError(f"{parts[0].name} can't be changed together with these parts: one of them is repeated")


def require_bounded(row: BulkJob | BulkPart) -> None:
    """Raise `StoreRefused` if a text of a row exceeds `MAX_TEXT_BYTES`."""
    for column in row.__slots__:
        text = getattr(row, column)
        if not isinstance(text, str) or _MAX_BYTES_PER_CHARACTER * len(text) <= MAX_TEXT_BYTES:
            continue
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_TEXT_BYTES:
            raise StoreRefused(
                f"{column} of {row.name} has {size} bytes; the limit is {MAX_TEXT_BYTES}",
                remedy="Divide the work into more parts or jobs, or shorten the text",
            )
