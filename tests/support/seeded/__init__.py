"""A seeded simulation of shards, workers and a gateway, with in-memory Kafka, store and clocks.

A seed determines a history: a list of steps, each with its own random numbers. Running it executes the real code of
shard, flush, recovery, jobs, merge and gateway in one thread, with crashes and stalls inside any call to the store.
Properties are checked during the run and at its end, against a model in plain Python. The same history always runs in
the same way, so a failure can be replayed by its seed and made smaller by leaving out steps.
"""
