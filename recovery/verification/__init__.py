"""Proving that what a shard has stored is whole: every row, every segment, every key, and that they agree.

In come the manifest's rows and the store; out go findings, which say in words what is wrong and what to do, notes,
which say what is as it may be but worth knowing, and counts of all that was looked at (`verify_shard` in `shard`). The
manifest is looked at by itself first (`manifest_rows`); then the index buckets (`index_buckets`), which give all keys
(`known_keys`); then bucket by bucket the segments of each group (`group_segments`) beside who was active
(`activity`); and at last Lucene: filled anew as a cold start does it (`documents`), and the local copy, if there is one
(`local_copy`).

Nothing is ever written, and no shard is taken: a shard may be verified while it runs. A finding never stops the rest;
what can't be judged because of one is left out, so that one fault is one finding.
"""
