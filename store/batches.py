"""Divides rows of the manifest and of bulk jobs into batches, bounded by rows and by bytes.

Cassandra rejects a batch that is larger than half a commit log segment (16 MiB by default), and retrying does not help.
The limit here is an order of magnitude below that.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from strandline.store.group_write import StoredGroup
from strandline.store.rows import CutRow, GroupRow

MAX_BATCH_BYTES: Final = 2**20

# The key, offsets, sums, checksums and names of a row, and what a server adds for each column. Names are bounded: an
# attempt is a random name of an owner or plan and some numbers, `written_by` a host and a process.
_ROW_BYTES: Final = 1_024
_LATE_BYTES: Final = 48

T = TypeVar("T")


def row_bytes(row: CutRow | GroupRow | StoredGroup) -> int:
    """An upper estimate of the bytes that a row takes in a batch."""
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
    """Divide rows into batches, in order, each as large as the limits permit. A row above the byte limit is a batch of
    its own.

    An element may stand for several rows that must stay together; `rows_of` returns their number.
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
