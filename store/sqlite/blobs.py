"""Large values under an attempt: segments, index buckets and job results.

Writers and readers handle a few megabytes at a time, each portion in its own transaction. So no lock and no snapshot is
held while the caller makes the next rows, or processes those that it got.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from strandline.store.sqlite.connections import Connections
from strandline.store.sqlite.expiry import Expiry

_PORTION_BYTES: Final = 8 * 2**20

Values = tuple[Any, ...]

# Parameters: the address of the rows, the key of the row within it, its expiry date, and the value.
INSERT_SEGMENT: Final = (
    "INSERT OR REPLACE INTO segments (dataset, shard, bucket, flush_group, attempt, first, seq, expires, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_INDEX_ROW: Final = (
    "INSERT OR REPLACE INTO index_buckets (dataset, shard, bucket, attempt, seq, expires, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
INSERT_RESULT: Final = (
    "INSERT OR REPLACE INTO job_results (dataset, shard, bucket, attempt, kind, seq, expires, data)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)

# Parameters: the address of the rows, a key, and further bounds if there are any. They return key and value of the rows
# at that address after that key, in order.
_SEGMENTS_AFTER: Final = (
    "SELECT first, seq, data FROM segments WHERE dataset = ? AND shard = ? AND bucket = ? AND flush_group = ?"
    " AND attempt = ? AND (first, seq) > (?, ?)"
)
SELECT_SEGMENTS: Final = _SEGMENTS_AFTER + " ORDER BY first, seq"
SELECT_SEGMENTS_UP_TO: Final = _SEGMENTS_AFTER + " AND first <= ? ORDER BY first, seq"
SELECT_INDEX_ROWS: Final = (
    "SELECT seq, data FROM index_buckets WHERE dataset = ? AND shard = ? AND bucket = ? AND attempt = ?"
    " AND seq > ? ORDER BY seq"
)
SELECT_RESULTS: Final = (
    "SELECT seq, data FROM job_results WHERE dataset = ? AND shard = ? AND bucket = ? AND attempt = ? AND kind = ?"
    " AND seq > ? AND seq <= ? ORDER BY seq"
)

# Keys below every other.
BEFORE_SEGMENTS: Final = (b"", -1)
BEFORE_ROWS: Final = (-1,)
LAST_ROW: Final = 2**31 - 1

_LAST_SEGMENT_BELOW: Final = (
    "SELECT first, seq FROM segments WHERE dataset = ? AND shard = ? AND bucket = ? AND flush_group = ?"
    " AND attempt = ? AND first < ? ORDER BY first DESC, seq DESC LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Blobs:
    """The large values in one file."""

    connections: Connections
    expiry: Expiry

    def write(self, insert: str, address: Values, rows: Iterable[Values], expires: int) -> int:
        """Write rows, given as (key ..., value); return their number."""
        written = 0
        for portion in _portions(rows):
            values = [(*address, *key, expires, value) for *key, value in portion]
            with self.connections.writing() as connection:
                connection.executemany(insert, values)
                self.expiry.delete_some(connection, written=len(values))
            written += len(values)
        return written

    def read(self, select: str, address: Values, after: Values, bounds: Values = ()) -> Iterator[Values]:
        """Yield rows as (key ..., value), after the key `after`."""
        while True:
            with self.connections.reading() as connection:
                parameters = (*address, *after, *bounds)
                # Closed immediately: a statement that was not read to its end would hold the snapshot.
                with closing(connection.execute(select, parameters)) as rows:
                    portion = next(_portions(rows), [])
            if not portion:
                return
            yield from portion
            after = portion[-1][:-1]

    def before_range(self, address: Values, first: bytes) -> Values:
        """Return the key after which the rows begin that may contain series from `first`.

        They begin with the last row whose own first series is below `first`.
        """
        with self.connections.reading() as connection:
            row = connection.execute(_LAST_SEGMENT_BELOW, (*address, first)).fetchone()
        return BEFORE_SEGMENTS if row is None else (row[0], row[1] - 1)


def _portions(rows: Iterable[Values]) -> Iterator[list[Values]]:
    """Divide rows into portions of some megabytes, by the size of their values, which are last."""
    portion: list[Values] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += len(row[-1])
        if size >= _PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
