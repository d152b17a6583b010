"""Bulk reads of stored samples, without a node. In: pinned rows of the manifests. Out: columns of samples.

A plan pins the manifest rows of all shards (`pins.py`), resolves a selector to series with the index buckets of the
same manifests (`resolving.py`), and divides the series into tasks (`task_division.py`, `series_task.py`). A task has
series, a time window, and the pinned rows that may contain their samples, so all tasks of a plan read the same state.
`read_slices` (`series_reading.py`) merges every bucket whose sample times overlap the window: the later bucket wins,
and between shards the higher one. `arrow_batches.py` converts the result to Arrow.

The package must not know what the samples are read for.
"""
