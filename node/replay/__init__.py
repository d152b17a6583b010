"""Worker processes for replay jobs, and catching up shards without a node.

In: settings, and the jobs in the store. Out: results of jobs in the store. A worker leases the jobs of a dataset's
shards, runs them on Spark, and ends when none are left. A node's supervisor runs one worker while any of its shards has
jobs; a shard without a node starts its own (`service`). `spark_worker` builds a worker from the settings, and
`catching_up` runs shards without their tails.
"""
