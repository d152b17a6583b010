"""Reading offset ranges again, somewhere else: what a replay job does, without Spark.

Records flow in by batches and become partial blocks (`mapping`), the blocks of one unit become segments, key summaries
and the keys' bytes (`reducing`), and those lie in the store under the job's attempt, with a result that says so
(`job_result`). Every function here gives the same bytes for the same input: so a task that is run twice changes
nothing. Spark moves the blocks about; the twin in memory does so in a loop.
"""
