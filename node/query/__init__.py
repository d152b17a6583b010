"""Queries of a node's shards: the requests to shards, how a shard answers them, and how the answers of all shards are
merged.

The HTTP handlers call `NodeQueries`. Its implementation in the front, `ShardQueries`, sends a `ShardRequest` to every
shard's process over a Unix socket (`ShardLink`), and merges the answers. In the shard's process, `LinkServer` receives
the requests and `ShardAnswers` answers them from the index, the buffers and the store. Answers are columns, without an
object per series or sample. `frames` has the bytes of the link, and `messages` their meaning. Lookups of a few series
go to the shard's JVM instead (`lookup_frames`), without Python.

This package must not know HTTP, nor how PromQL is parsed and planned.
"""
