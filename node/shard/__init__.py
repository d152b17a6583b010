"""A shard: the process that reads one partition, keeps its index and its write buffer, and stores what is due.

Records flow in from a `PartitionLog`; index buckets, segments and manifest rows flow out to a `Store`; records that
can't be decoded leave for the dead-letter topic. `shard` is the loop, `cutting` decides where buckets end, `flusher`
stores closed buckets in the background, `reader` answers queries from the buffer and the store.

It must not know of HTTP, of the supervisor, or of how settings are read.
"""
