"""The store in one SQLite file: for tests, simulations and a single small node.

The same rows flow in and out as with Cassandra, and one contract suite holds both to the same promises. What Cassandra
does by time-to-live is done here by the clock that is passed in: once that has passed the date of a row in two looks a
minute apart, writes delete a few such rows as they go. Several threads and processes may have the file open. It must
not know what the rows mean, or that there is another kind of store.
"""

from strandline.store.sqlite.store import SqliteStore, open_sqlite_store

__all__ = ["SqliteStore", "open_sqlite_store"]
