"""Reading stored samples in bulk, without a node: pinned rows of the manifest in, columns of samples out.

A plan pins the manifest's rows of all shards, then resolves a selector to series from the index buckets that the same
manifests name, and divides the series into tasks. A task has its series, its window of time and the pinned rows that
may hold them, so all tasks of a plan read one state. A task merges every bucket whose sample times overlap its window:
the later bucket wins, and between shards the higher one. Nothing here knows what the samples are read for.
"""
