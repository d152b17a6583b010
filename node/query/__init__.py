"""Queries: what may be asked of a shard, how a shard answers, and how the answers of several become one.

An `Ask` goes from the HTTP front to each shard's process over a socket of the machine, and an answer comes back, as
columns: no object for each series or sample. `NodeQueries` is what the front's handlers call; it knows shards, and
nothing of HTTP.

In the shard's process `LinkServer` takes questions and `ShardAnswers` answers them, from index, buffers and store. In
the front `LinkClient` asks one shard, and `ShardQueries` all of them. What crosses is in `frames` (bytes) and
`messages` (what they mean).
"""
