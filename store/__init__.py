"""The store: where samples, index buckets and the manifest lie for good.

Encoded segments, bitmaps and manifest rows flow in; the same rows flow out, by shard, bucket and group. The store keeps
what it is given and the order in which it was given, and refuses a writer that has lost its shard. It must not know
what a label or a sample means, or who asks for the shards that it keeps.
"""
