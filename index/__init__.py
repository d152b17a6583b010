"""The index of a shard: its part keys in Lucene, and the columns, time buckets and local copy that belong to it.

In: batches of part keys as columns (part id, key hash, the key's bytes), deletions by part id, and queries. Out:
roaring bitmaps of part ids, label names and values with counts, and the columns again after a restart. `documents` has
the byte layouts, `vm` starts the JVM that Lucene runs in, `part_key_index` is the Lucene index, `shard_index` keeps it
in step with key table and columns, `catalogue` answers queries, and `pylucene/` builds the `lucene` module with our
extension.

It must not know of Kafka, Cassandra, Spark or the settings, whose values are passed in. This file imports nothing, so
that set-up can build PyLucene before any package is installed.
"""
