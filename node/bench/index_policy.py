"""The bucket policy and the identity of the local copy for `strandline bench index`."""

from strandline.index.local_copy import CopyIdentity
from strandline.index.policy import BucketPolicy

HOUR = 3_600_000
NOW = 490_000 * HOUR
POLICY = BucketPolicy(flush_interval=HOUR, retention=30 * 24 * HOUR, margin=7 * 24 * HOUR, stale_after=HOUR)
IDENTITY = CopyIdentity(dataset="bench", topic_id="bench", shard=0, bucket=NOW // HOUR, attempt="bench")
EXPIRY = {IDENTITY.bucket: POLICY.expected_expiry(IDENTITY.bucket)}
