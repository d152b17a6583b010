"""Expired rows are deleted by those who write: a few at a time, so that no write waits long for it."""

import sqlite3
from typing import Final

# For every row that is written, so many may be deleted: more than one, so that deleting keeps up with writing.
_DELETED_PER_WRITTEN: Final = 2
# A write of one row deletes as many as this.
_DELETED_AT_LEAST: Final = 8

_DELETES: Final = (
    "DELETE FROM segments WHERE rowid IN (SELECT rowid FROM segments WHERE expires <= ? LIMIT ?)",
    "DELETE FROM index_buckets WHERE rowid IN (SELECT rowid FROM index_buckets WHERE expires <= ? LIMIT ?)",
    "DELETE FROM job_results WHERE rowid IN (SELECT rowid FROM job_results WHERE expires <= ? LIMIT ?)",
    "DELETE FROM flush_groups WHERE rowid IN (SELECT rowid FROM flush_groups WHERE expires <= ? LIMIT ?)",
    "DELETE FROM cuts WHERE rowid IN (SELECT rowid FROM cuts WHERE expires <= ? LIMIT ?)",
    "DELETE FROM jobs WHERE rowid IN (SELECT rowid FROM jobs WHERE expires <= ? LIMIT ?)",
)


def delete_expired(connection: sqlite3.Connection, now: int, *, written: int) -> None:
    """Delete some rows that have expired by `now`, within the transaction that writes `written` rows.

    The space that they leave is used again; the file does not shrink.
    """
    allowed = max(_DELETED_AT_LEAST, _DELETED_PER_WRITTEN * written)
    for delete in _DELETES:
        allowed -= connection.execute(delete, (now, allowed)).rowcount
        if allowed == 0:
            return
