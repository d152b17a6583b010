"""Part keys and where to find them: the Lucene index of a shard, and what belongs to it.

In: batches of part keys as columns (part id, key hash, the key's bytes), deletions by part id, and queries. Out:
roaring bitmaps of part ids, label names and values with counts, and the columns again after a restart. `documents` has
the byte layouts, `vm` starts the JVM that Lucene runs in, `part_key_index` is the index itself, and `pylucene/` builds
the `lucene` module with our extension.

It must not know of Kafka, Cassandra, Spark or the settings: what it needs is handed to it as values. It imports nothing
here, so that set-up can build PyLucene before any package is installed.
"""
