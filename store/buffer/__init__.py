"""The write buffer: the samples of one bucket, from decoding until they are stored.

In: columns of samples of numbered series, in order of arrival. Out: sorted runs, one group at a time for the flush, or
the series and times of a query. In between, rows are sealed into compressed pages, short pages are merged, and beyond
the memory limit pages are spilled to local disk. A sample is only dropped if a later one has the same series and time.

The buffer must not know what a label is, where samples come from, or the format of segments. It does not survive the
process, because Kafka still has its samples.

Threads:

- the *writer*, one thread, calls `WriteBuffer.define`, `append` and `freeze`. It seals and spills, and never waits for
  the other threads;
- *maintenance*, one thread per buffer, calls `WriteBuffer.maintain`, which merges pages in bounded steps;
- the *flusher*, one thread per buffer, calls `FrozenBuffer.run` and `release`;
- any thread may call `snapshot` and `status` at any time.

A page's content is immutable; only the set of pages changes, under a lock that is held while a tuple is swapped. A
snapshot references the pages and rows of its moment, and keeps them in memory as long as it exists.
"""
