"""Workers that carry out replay jobs, as processes of a node.

A worker leases the jobs of a dataset's shards, has Spark read them, and ends when there are none left. A node's
supervisor keeps one while any of its shards has jobs; a shard that runs without a node starts its own (`service`). How
a worker is put together from the settings is in `spark_worker`.
"""
