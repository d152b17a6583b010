"""Bulk jobs: large pieces of work that are divided into parts, survive any crash, and do each part exactly once.

In come a spec (what to import, send or export) and sources; out go records in Kafka, files, and counts in the store. A
job has parts; a part is the unit of leasing, retry and counting. Decisions are pure functions over values; the store,
Kafka and file systems stand behind small protocols. It may use `wire`, `index`, `store`, `kafka` and `recovery`; it
knows neither Spark nor the processes, HTTP or settings of a node.
"""
