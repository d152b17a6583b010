"""Which keys end, are purged and roll over at a cut, to the exact bucket and millisecond."""

import numpy as np
import pytest

from strandline.index.bucket_rules import ended_keys, keys_to_purge, keys_to_roll_over
from strandline.index.part_columns import ABSENT, LIVE, PartRows
from strandline.index.policy import BucketPolicy

pytestmark = pytest.mark.unit

HOUR = 3_600_000
POLICY = BucketPolicy(flush_interval=HOUR, retention=3 * HOUR, margin=4 * HOUR, stale_after=2 * HOUR)
BUCKET = 100


def keys(
    *, end: list[int] | None = None, active_in: list[int] | None = None, newest: list[int] | None = None
) -> PartRows:
    """Keys, live ones without an end."""
    number = len(end or active_in or newest or [])
    hashes = np.arange(number, dtype=np.uint64)
    rows = PartRows.new_keys(np.arange(number, dtype=np.uint32), hashes, hashes, hashes)
    for name, column in (("end", end), ("active_in", active_in), ("newest", newest)):
        if column is not None:
            getattr(rows, name)[:] = column
    return rows


def never(_bucket: int) -> int:
    """Nothing expires."""
    return LIVE


def test_a_live_key_has_ended_without_a_sample_in_the_newest_buckets() -> None:
    """A key stays live for two hours without samples: this bucket and the previous one."""
    assert ended_keys(keys(active_in=[98, 99, 100]), BUCKET, POLICY).tolist() == [True, False, False]


def test_an_ended_key_does_not_end_again() -> None:
    assert not ended_keys(keys(end=[97 * HOUR], active_in=[97]), BUCKET, POLICY).any()


def test_a_key_is_purged_once_it_ended_before_the_retention_counted_from_the_end_of_the_bucket() -> None:
    oldest = (BUCKET + 1) * HOUR - 3 * HOUR
    assert keys_to_purge(keys(end=[oldest - 1, oldest, LIVE, ABSENT]), BUCKET, POLICY).tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_a_record_is_rolled_over_when_it_is_as_many_buckets_back_as_are_kept() -> None:
    """The bucket that holds it is dropped once this one is stored."""
    assert keys_to_roll_over(keys(newest=[96, 97, 98]), BUCKET, POLICY, never).tolist() == [True, True, False]


def test_a_record_is_written_again_if_it_could_expire_before_the_next_two_cuts_are_done() -> None:
    safe = (BUCKET + 2) * HOUR + POLICY.margin
    expiry = {98: safe - 1, 99: safe}
    assert keys_to_roll_over(keys(newest=[98, 99]), BUCKET, POLICY, expiry.__getitem__).tolist() == [True, False]


def test_a_record_in_a_superseded_bucket_is_written_again() -> None:
    rolling = keys_to_roll_over(keys(newest=[98, 99]), BUCKET, POLICY, never, frozenset({99}))
    assert rolling.tolist() == [False, True]


def test_a_key_without_a_record_is_not_rolled_over() -> None:
    assert not keys_to_roll_over(keys(newest=[-1]), BUCKET, POLICY, never).any()
