"""All questions of `tests/data/promql` put to a real node: gateway, Kafka, Cassandra, shards and HTTP."""
