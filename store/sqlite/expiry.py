"""Deletes expired rows with each write: a few at a time, so that no write is delayed long.

A row has expired once two readings of the clock a minute apart are beyond its date. Cuts are deleted before group rows,
and both from the oldest bucket: a cut without its group rows would look like a hole.
"""

import sqlite3
from dataclasses import dataclass, field
from typing import Final

from strandline.clock import Clock
from strandline.store.settled_time import SettledTime

# The number of rows that may be deleted per written row: above one, so that deleting keeps up with writing.
_DELETED_PER_WRITTEN: Final = 2
# The minimum number per write.
_MIN_DELETED: Final = 8

_OLDEST_BUCKET_FIRST: Final = " ORDER BY expires, bucket"
_TABLES: Final = (
    ("cuts", _OLDEST_BUCKET_FIRST),
    ("flush_groups", _OLDEST_BUCKET_FIRST),
    ("segments", ""),
    ("index_buckets", ""),
    ("job_results", ""),
    ("jobs", ""),
    # A bulk job before its parts, which can't be found without it.
    ("bulk_jobs", ""),
    ("bulk_parts", ""),
)
_DELETES: Final = tuple(
    f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE expires <= ?{order} LIMIT ?)"  # noqa: S608
    for table, order in _TABLES
)


@dataclass(frozen=True, slots=True)
class Expiry:
    """Deletes by a clock. Called by the writer, so by one thread at a time."""

    clock: Clock
    settled: SettledTime = field(default_factory=SettledTime)

    def delete_some(self, connection: sqlite3.Connection, *, written: int) -> None:
        """Delete some expired rows, within the transaction that writes `written` rows.

        Their space is reused; the file does not shrink.
        """
        passed = self.settled.observe(self.clock.now_ms(), self.clock.monotonic())
        if passed is None:
            return
        allowed = max(_MIN_DELETED, _DELETED_PER_WRITTEN * written)
        for delete in _DELETES:
            allowed -= connection.execute(delete, (passed, allowed)).rowcount
            if allowed == 0:
                return
