"""Sends all queries of `tests/data/promql` to a real node with gateway, Kafka, Cassandra, shards and HTTP."""
