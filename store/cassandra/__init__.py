"""The store in Cassandra, for production.

It implements `strandline.store.protocol`, and passes the same contract test suite as the SQLite store. `schema.cql` has
the tables and `statements` all statements. Rows that a compare-and-set wrote are only written by compare-and-sets
(`ownership`, `manifest`, `jobs`, `datasets`). Large values are written under an attempt by plain writes, many
concurrently (`blobs`, `writing`). `requests` wraps the driver; `retries` and `conditional` deal with missing answers.

It must not know what the rows mean, or that there is another kind of store.
"""

from strandline.store.cassandra.retries import RetryPolicy
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store

__all__ = ["CassandraStore", "RetryPolicy", "open_cassandra_store"]
