"""A shard: the process that reads one partition, keeps its index and its write buffer, and stores closed buckets.

- Inputs: the records of a `PartitionLog`, and on a start the manifest, index buckets and replay results of a `Store`.
- Outputs: index buckets, segments and manifest rows, to the `Store`; records that can't be decoded, to `DeadLetters`;
  reports for the supervisor.

`Shard` has the reading loop, `BucketEnds` decides where buckets end, `Flusher` stores closed buckets in a second
thread, and `ShardReader` reads samples from the buffer and the store for queries. `recover` is the start: ownership,
manifest, index and replay plan. `assembled` creates a shard's parts from the settings, and `RunningShard` runs them.

It must not know of HTTP, of the supervisor, or of how settings are read.
"""
