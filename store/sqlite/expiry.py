"""Expired rows are deleted by those who write: a few at a time, so that no write waits long for it.

A row has expired once the clock has passed its date in two looks a minute apart. Cuts go before group rows, and both
with the oldest bucket first: a cut without its group's rows would look like a hole.
"""

import sqlite3
from dataclasses import dataclass, field
from typing import Final

from strandline.clock import Clock
from strandline.store.settled_time import SettledTime

# For every row that is written, so many may be deleted: more than one, so that deleting keeps up with writing.
_DELETED_PER_WRITTEN: Final = 2
# A write of one row deletes as many as this.
_DELETED_AT_LEAST: Final = 8

_OLDEST_BUCKET_FIRST: Final = " ORDER BY expires, bucket"
_TABLES: Final = (
    ("cuts", _OLDEST_BUCKET_FIRST),
    ("flush_groups", _OLDEST_BUCKET_FIRST),
    ("segments", ""),
    ("index_buckets", ""),
    ("job_results", ""),
    ("jobs", ""),
    # A bulk job before its parts, which are not found without it.
    ("bulk_jobs", ""),
    ("bulk_parts", ""),
)
_DELETES: Final = tuple(
    f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE expires <= ?{order} LIMIT ?)"  # noqa: S608
    for table, order in _TABLES
)


@dataclass(frozen=True, slots=True)
class Expiry:
    """Deletes by a clock. Its methods are called by whoever writes, and so by one thread at a time."""

    clock: Clock
    settled: SettledTime = field(default_factory=SettledTime)

    def delete_some(self, connection: sqlite3.Connection, *, written: int) -> None:
        """Delete some rows that have expired, within the transaction that writes `written` rows.

        The space that they leave is used again; the file does not shrink.
        """
        passed = self.settled.observe(self.clock.now_ms(), self.clock.monotonic())
        if passed is None:
            return
        allowed = max(_DELETED_AT_LEAST, _DELETED_PER_WRITTEN * written)
        for delete in _DELETES:
            allowed -= connection.execute(delete, (passed, allowed)).rowcount
            if allowed == 0:
                return
