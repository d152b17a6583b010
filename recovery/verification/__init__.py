"""Verifies that everything in a shard's manifest exists and is consistent: every row, segment and key.

Inputs are the manifest's rows and the store. Outputs are findings, which describe a fault and its remedy, notes, which
describe harmless differences, and counts of what was checked (`verify_shard` in `shard`). The order of the checks: the
manifest alone (`manifest_rows`); the index buckets (`index_buckets`), from which all keys are collected (`known_keys`);
bucket by bucket, the segments of each group (`group_segments`) against the bitmaps of active keys (`activity`); a new
Lucene index, loaded from the buckets as in a start without a local copy (`documents`); and the local copy, if there is
one (`local_copy`).

It writes nothing and takes no ownership, so a shard can be verified while it runs. A finding never stops the other
checks. Checks that a finding makes meaningless are skipped, so that one fault produces one finding.
"""
