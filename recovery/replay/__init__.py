"""What a replay job does, without Spark: reading offset ranges again, outside of the shard.

Inputs are batches of records. A task turns them into blocks (`mapping`). The blocks of one unit become segments, key
summaries and key bytes (`reducing`), which are written to the store under the job's attempt, with a result that
references them (`job_result`). Every function returns the same bytes for the same input, so a task that runs twice
changes nothing. Spark (`strandline.spark.replay`) moves the blocks between tasks; `memory_runner` does it in a loop,
for tests.

It must not know Spark, the manifest, or how jobs are leased.
"""
