"""What happens after a restart: from which offset to read, what to replay, and when a shard is whole again.

In come the manifest's rows, Kafka's offsets and the results of replay jobs; out go decisions, as values. It may use
`wire`, `index` and `store`; it knows neither Spark nor the processes, HTTP or settings of a node.
"""
