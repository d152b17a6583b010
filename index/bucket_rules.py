"""The rules at a bucket's cut, as functions over columns: which keys have ended, which go, and which roll over.

None of them changes anything. The caller applies what they say, in the order of this page.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from strandline.index.bitmaps import to_bitmap, to_ids
from strandline.index.part_columns import ABSENT, LIVE, PartColumns
from strandline.index.policy import BucketPolicy

Expiry = Callable[[int], int]


def ended_keys(columns: PartColumns, recently_active: Iterable[BitMap]) -> BitMap:
    """Live keys without a sample in any of the newest K buckets, the one being cut included."""
    live = columns.end == LIVE
    for active in recently_active:
        live[to_ids(active)] = False
    return _ids_of(live)


def keys_to_purge(columns: PartColumns, bucket: int, policy: BucketPolicy) -> BitMap:
    """Keys that ended before the retention which counts from `bucket`.

    A function of the state at the cut and of nothing else. Were it to look at what is stored by now, a sample that
    comes just then would find the old key one day and begin a new one another day, and no replay could repeat it.
    """
    ended = (columns.end != LIVE) & (columns.end != ABSENT)
    return _ids_of(ended & (columns.end < policy.purge_before(bucket)))


def keys_to_roll_over(
    columns: PartColumns,
    bucket: int,
    policy: BucketPolicy,
    expiry: Expiry,
    superseded: frozenset[int] = frozenset(),
) -> BitMap:
    """Keys whose newest record must be written again into `bucket`, lest no stored bucket holds it.

    That is so where the record lies N or more buckets back, where it would expire before the next two cuts are surely
    done (`expiry` tells when a stored bucket does: retention may have been another when it was), and where its bucket
    was superseded by a rewind.
    """
    safe_until = policy.end_of(bucket + 1) + policy.margin
    # Keys by the hundred thousand lie in few buckets: the question is asked once for each of those.
    buckets, place = np.unique(columns.newest, return_inverse=True)
    due = np.array(
        [
            old >= 0 and (old <= bucket - policy.kept_buckets or expiry(old) < safe_until or old in superseded)
            for old in buckets.tolist()
        ],
        dtype=np.bool_,
    )
    return _ids_of(due[place] & columns.present())


def _ids_of(mask: npt.NDArray[np.bool_]) -> BitMap:
    return to_bitmap(np.flatnonzero(mask).astype(np.uint32))
