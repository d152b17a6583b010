"""Rows of the manifest, and of bulk jobs, in batches that a store takes: bounded by bytes, and not only by number.

Cassandra refuses a batch that is larger than half a commit log segment, 16 MiB as shipped, and a refusal is final. The
bound leaves an order of magnitude to that.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from strandline.store.group_write import StoredGroup
from strandline.store.rows import CutRow, GroupRow

MAX_BATCH_BYTES: Final = 2**20

# Key, offsets, sums, checksums and names of a row, with what a server adds for each column. Names are bounded: an
# attempt is an owner's or a plan's random name and some numbers, `written_by` a host and a process.
_ROW_BYTES: Final = 1_024
_LATE_BYTES: Final = 48

T = TypeVar("T")


def row_bytes(row: CutRow | GroupRow | StoredGroup) -> int:
    """How many bytes a row takes in a batch, or some more."""
    return _ROW_BYTES if isinstance(row, CutRow) else _ROW_BYTES + _LATE_BYTES * len(row.late)


def _one(_: object) -> int:
    return 1


def batches(
    rows: Iterable[T],
    size: Callable[[T], int],
    *,
    max_rows: int,
    max_bytes: int = MAX_BATCH_BYTES,
    rows_of: Callable[[T], int] = _one,
) -> Iterator[list[T]]:
    """Rows in order, as many together as fit. One that is larger than all of a batch goes alone.

    What is not to be parted may be given as one, with `rows_of` for how many rows it is.
    """
    batch: list[T] = []
    count = total = 0
    for row in rows:
        more, length = rows_of(row), size(row)
        if batch and (count + more > max_rows or total + length > max_bytes):
            yield batch
            batch, count, total = [], 0, 0
        batch.append(row)
        count, total = count + more, total + length
    if batch:
        yield batch
