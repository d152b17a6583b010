"""The write buffer: the samples of one bucket, from the moment they are decoded until they are stored.

In flow columns of samples, in order of arrival, of series that the shard has numbered; out flow sorted runs, a group at
a time for the flush, or for whatever series and times a query asks for. In between, rows are sealed into compressed
pages, short pages are merged, and past the memory limit pages lie on local disk. Nothing is ever dropped but a sample
that a later one of the same series and time replaces. The buffer must not know what a label is, where samples come
from, or what a segment looks like; nothing in it survives the process, because Kafka still has it all.

Who may call what:

- the *writer*, one thread: `WriteBuffer.define`, `append`, `freeze`. It seals and spills, and waits for nobody else;
- *maintenance*, one thread a buffer: `WriteBuffer.maintain`, which merges pages in bounded steps;
- the *flusher*, one thread a buffer: `FrozenBuffer.run` and `release`;
- anybody: `snapshot` and `status`, at any time.

A page's content never changes. What changes is which pages there are, and a small lock is held for as long as it takes
to swap a tuple. A snapshot holds the pages and rows that there were, and keeps them for as long as it lives.
"""
