"""Bulk jobs: imports, sends and exports, which are divided into parts and survive any crash.

In: a spec (what to import, send or export) and sources. Out: records in Kafka, files, and counts in the store. Each
part takes effect exactly once; a part is the unit of leasing, retry and counting.

`BulkBoard` (`board.py`) reads and changes the rows of jobs and parts. A `BulkWorker` (`worker.py`) leases parts and has
a `PartRunner` run them (`running.py`); what a part does is up to its `JobKind`: `importing`, `sending` or `exporting`.
`transitions.py` has the states of a job, and `job_lifecycle.py` applies them. `landing` writes to Kafka, `formats` and
`sources` read files, `reading` reads the store, and `verifying` compares the result with its source.

Decisions are pure functions over values; the store, Kafka and file systems are behind small protocols. The package may
use `wire`, `index`, `store`, `kafka` and `recovery`. It must not know Spark, or the processes, HTTP or settings of a
node.
"""
