"""A seeded simulation of shards, workers and a gateway over twins of Kafka, store and clocks.

A seed gives a history: a list of steps, each with random numbers of its own. Running it drives the real code of shard,
flush, recovery, jobs, merge and gateway in one thread, with crashes and stalls inside any call to the store. Properties
are checked while it runs and at its end, beside a model in plain Python. The same history always runs the same way, so
a failure is replayed by its seed and made smaller by leaving steps out.
"""
