"""The rules at a bucket's cut, as pure functions over columns: which keys end, which are purged, which roll over.

Each returns a mask over the rows. The caller applies them in the order of this module.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from strandline.index.part_columns import ABSENT, LIVE, PartRows
from strandline.index.policy import BucketPolicy

Expiry = Callable[[int], int]
Mask = npt.NDArray[np.bool_]


def ended_keys(keys: PartRows, bucket: int, policy: BucketPolicy) -> Mask:
    """Live keys without a sample in any of the newest K buckets up to `bucket`."""
    ended: Mask = (keys.end == LIVE) & (keys.active_in <= bucket - policy.live_buckets)
    return ended


def keys_to_purge(keys: PartRows, bucket: int, policy: BucketPolicy) -> Mask:
    """Keys that ended before the retention, counted from `bucket`.

    This depends only on the state at the cut. If it depended on what is stored at the moment, a concurrent sample would
    find the old key in one run and begin a new key in another, and a replay could not reproduce that.
    """
    # The end of a live key is the maximum time.
    going: Mask = (keys.end != ABSENT) & (keys.end < policy.purge_before(bucket))
    return going


def keys_to_roll_over(
    keys: PartRows,
    bucket: int,
    policy: BucketPolicy,
    expiry: Expiry,
    superseded: frozenset[int] = frozenset(),
) -> Mask:
    """Keys whose newest record must be written again into `bucket`, because otherwise no stored bucket would have it.

    That is the case if the record is N or more buckets back, if it would expire before the next two cuts are certainly
    done (`expiry` returns when a stored bucket expires: its retention may have been another one), or if a rewind has
    superseded its bucket.
    """
    safe_until = policy.end_of(bucket + 1) + policy.margin
    # Hundreds of thousands of keys are in few buckets, so compute this once per bucket.
    buckets, bucket_index = np.unique(keys.newest, return_inverse=True)
    due = np.array(
        [
            old >= 0 and (old <= bucket - policy.kept_buckets or expiry(old) < safe_until or old in superseded)
            for old in buckets.tolist()
        ],
        dtype=np.bool_,
    )
    rolling: Mask = due[bucket_index] & keys.present()
    return rolling
