"""The store: samples, index buckets, the manifest and jobs, in Cassandra or in one SQLite file.

In: encoded segments, rows of index buckets, manifest rows, and changes of jobs. Out: the same rows, by shard, bucket
and group, in the order in which they were written. `protocol` is the interface of every store, `rows`, `jobs` and
`bulk_jobs` are its values, `cassandra` and `sqlite` implement it, and `buffer` holds samples until they are stored. A
commit of a writer that no longer owns the shard is refused.

It must not know what a label or a sample means, or which process reads the shards.
"""
