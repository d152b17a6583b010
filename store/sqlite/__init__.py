"""The store in one SQLite file: for tests, simulations and a single small node.

It stores the same rows as the Cassandra store, and passes the same contract test suite. Instead of TTLs, writes delete
a few expired rows, by the clock that is passed in: a row has expired once two readings a minute apart are beyond its
date. Several threads and processes may have the file open.

It must not know what the rows mean, or that there is another kind of store.
"""

from strandline.store.sqlite.store import SqliteStore, open_sqlite_store

__all__ = ["SqliteStore", "open_sqlite_store"]
