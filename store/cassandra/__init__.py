"""The store in Cassandra: for production.

Rows flow in and out as `strandline.store.protocol` says, and one contract suite holds this store and its embedded twin
to the same promises. `schema.cql` has the tables and `statements` every statement. What a compare-and-set wrote is only
ever written by one (`ownership`, `manifest`, `jobs`, `datasets`); large values lie under an attempt and are written
plainly, many at once (`blobs`, `writing`). `requests` is the border to the driver, `retries` and `conditional` see to
answers that don't come. It must not know what the rows mean, or that there is another kind of store.
"""

from strandline.store.cassandra.retries import RetryPolicy
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store

__all__ = ["CassandraStore", "RetryPolicy", "open_cassandra_store"]
