"""The rules at a bucket's cut, as functions over columns: which keys have ended, which go, and which roll over.

None of them changes anything; each answers with a mask over the rows. The caller applies what they say, in the order of
this page.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from strandline.index.part_columns import ABSENT, LIVE, PartRows
from strandline.index.policy import BucketPolicy

Expiry = Callable[[int], int]
Mask = npt.NDArray[np.bool_]


def ended_keys(keys: PartRows, bucket: int, policy: BucketPolicy) -> Mask:
    """Live keys without a sample in any of the newest K buckets, of which `bucket` is the newest."""
    ended: Mask = (keys.end == LIVE) & (keys.active_in <= bucket - policy.live_buckets)
    return ended


def keys_to_purge(keys: PartRows, bucket: int, policy: BucketPolicy) -> Mask:
    """Keys that ended before the retention which counts from `bucket`.

    A function of the state at the cut and of nothing else. Were it to look at what is stored by now, a sample that
    comes just then would find the old key one day and begin a new one another day, and no replay could repeat it.
    """
    # A live key's end is far in the future.
    going: Mask = (keys.end != ABSENT) & (keys.end < policy.purge_before(bucket))
    return going


def keys_to_roll_over(
    keys: PartRows,
    bucket: int,
    policy: BucketPolicy,
    expiry: Expiry,
    superseded: frozenset[int] = frozenset(),
) -> Mask:
    """Keys whose newest record must be written again into `bucket`, lest no stored bucket holds it.

    That is so where the record lies N or more buckets back, where it would expire before the next two cuts are surely
    done (`expiry` tells when a stored bucket does: retention may have been another when it was), and where its bucket
    was superseded by a rewind.
    """
    safe_until = policy.end_of(bucket + 1) + policy.margin
    # Keys by the hundred thousand lie in few buckets: the question is asked once for each of those.
    buckets, place = np.unique(keys.newest, return_inverse=True)
    due = np.array(
        [
            old >= 0 and (old <= bucket - policy.kept_buckets or expiry(old) < safe_until or old in superseded)
            for old in buckets.tolist()
        ],
        dtype=np.bool_,
    )
    rolling: Mask = due[place] & keys.present()
    return rolling
