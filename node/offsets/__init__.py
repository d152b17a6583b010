"""Checkpoints, bucket history and readiness of a dataset, and rewinds.

In: manifests from the store, and facts about the topic from the brokers. Out: reports as values, for commands, HTTP and
metrics. A rewind is the only operation that changes anything. Decisions are made by `strandline.recovery`. It must not
know how a shard runs.
"""
