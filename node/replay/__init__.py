"""Workers that carry out replay jobs, as processes of a node.

A worker leases the jobs of a dataset's shards, has Spark read them, and ends when there are none left. Whoever owns a
shard sees to it that one is running (`service`); how a worker is put together from the settings is in `spark_worker`.
"""
