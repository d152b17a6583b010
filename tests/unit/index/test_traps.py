"""Known faults of other systems with an index of this kind; each has a test here."""

from dataclasses import replace

import numpy as np
import pytest
from pyroaring import BitMap

from strandline.index.bitmaps import to_bitmap
from strandline.index.bucket_codec import EncodedBucket, StoredBucket, decode_bucket
from strandline.index.bucket_load import load_index
from strandline.index.documents import decode_part_key
from strandline.index.key_documents import DictDocuments
from strandline.index.part_columns import LIVE
from strandline.index.policy import BucketPolicy
from strandline.index.shard_index import OutOfPartIds, ShardIndex
from strandline.index.time_bucket import FrozenBucket
from strandline.wire.encoding import Series
from support.records import decoded

pytestmark = pytest.mark.unit

HOUR = 3_600_000
POLICY = BucketPolicy(flush_interval=HOUR, retention=3 * HOUR, margin=4 * HOUR, stale_after=HOUR)


class Shard:
    """A shard's index, its stored buckets, and samples by name and time in hours."""

    def __init__(self, policy: BucketPolicy = POLICY, first: int = 100) -> None:
        self.policy = policy
        self.documents = DictDocuments()
        self.index = ShardIndex(policy, self.documents, open_bucket=first, next_part_id=0, series_limit=1000)
        self.store: dict[int, EncodedBucket] = {}

    def sample(self, name: str, hour: float) -> None:
        series = [Series([("name", name)], [(int(hour * HOUR), 1.0)])]
        self.index.take(decoded(series))

    def cut_and_store(self) -> FrozenBucket:
        frozen = self.index.cut()
        self.put(frozen)
        return frozen

    def put(self, frozen: FrozenBucket) -> None:
        self.store[frozen.bucket] = self.index.encode(frozen)
        self.index.stored(frozen, self.policy.expected_expiry(frozen.bucket))

    def read(self, bucket: int) -> StoredBucket:
        encoded = self.store[bucket]
        return decode_bucket(bucket, encoded.rows, len(encoded.rows), encoded.checksum)

    def restarted(self, policy: BucketPolicy | None = None, *, rewound_to: int | None = None) -> "Shard":
        """A shard that loads what is stored; buckets from `rewound_to` are superseded."""
        after = Shard(policy or self.policy)
        after.store = dict(self.store)
        open_bucket = max(self.store) + 1 if rewound_to is None else rewound_to
        newest_first = sorted(self.store, reverse=True)
        superseded = [bucket for bucket in newest_first if bucket >= open_bucket]
        after.index = load_index(
            after.policy,
            after.documents,
            [self.read(bucket) for bucket in newest_first if bucket < open_bucket],
            {bucket: self.policy.expected_expiry(bucket) for bucket in self.store},
            open_bucket=open_bucket,
            next_part_id=self.index.next_part_id,
            series_limit=1000,
            superseded=[self.read(bucket) for bucket in superseded],
        )
        after.index.supersede(superseded)
        return after

    def keys(self) -> dict[str, tuple[int, float, float | None]]:
        """Of each existing key: part id, start and end in hours, None while live."""
        keys = self.index.columns.rows
        keys = keys.take(keys.present())
        batch = self.documents.fetch(to_bitmap(keys.part_id))
        names = {
            part_id: decode_part_key(batch.part_key(position))["name"]
            for position, part_id in enumerate(batch.part_ids.tolist())
        }
        rows = zip(keys.part_id.tolist(), keys.start.tolist(), keys.end.tolist(), strict=True)
        return {
            names[part_id]: (part_id, start / HOUR, None if end == LIVE else end / HOUR) for part_id, start, end in rows
        }


def test_the_oldest_bucket_is_loaded_too() -> None:
    shard = Shard(BucketPolicy(HOUR, retention=50 * HOUR, margin=4 * HOUR, stale_after=50 * HOUR))
    shard.sample("only in the oldest", 100.5)
    shard.cut_and_store()
    shard.cut_and_store()
    shard.cut_and_store()
    assert shard.restarted().keys() == {"only in the oldest": (0, 100.5, None)}


def test_a_key_that_resumes_is_live_at_once_and_not_only_after_the_next_flush() -> None:
    shard = Shard()
    shard.sample("a", 100.5)
    shard.cut_and_store()
    shard.cut_and_store()
    assert shard.keys()["a"] == (0, 100.5, 100.5)
    shard.sample("a", 102.2)
    assert shard.keys()["a"] == (0, 100.5, None)


def test_a_key_that_ended_and_comes_back_keeps_its_part_id() -> None:
    shard = Shard()
    shard.sample("a", 100.5)
    shard.cut_and_store()
    shard.cut_and_store()
    shard.sample("a", 102.2)
    assert shard.keys()["a"][0] == 0
    shard.cut_and_store()
    after = shard.restarted()
    after.sample("a", 103.1)
    assert after.keys() == {"a": (0, 100.5, None)}
    assert after.index.next_part_id == 1


def test_purging_leaves_what_an_unstored_bucket_needs() -> None:
    shard = Shard()
    shard.sample("a", 100.5)
    unstored = [shard.index.cut() for _ in range(6)]
    assert shard.keys() == {}, "its retention has passed"
    for frozen in unstored:
        shard.put(frozen)
    assert decode_part_key(shard.read(100).records[0].keys.part_key(0)) == {"name": "a"}


def test_a_purged_key_that_comes_back_is_one_key_with_a_new_id_also_after_a_restart() -> None:
    shard = Shard()
    shard.sample("a", 100.5)
    for _ in range(5):
        shard.cut_and_store()
    assert shard.keys() == {}
    shard.sample("a", 105.5)
    assert shard.keys() == {"a": (1, 105.5, None)}
    shard.cut_and_store()
    assert shard.restarted().keys() == {"a": (1, 105.5, None)}


def test_a_purged_key_does_not_come_back_with_a_restart() -> None:
    """Buckets that hold its record may still be there."""
    shard = Shard()
    shard.sample("gone", 100.5)
    for _ in range(6):
        shard.cut_and_store()
    assert shard.keys() == {}
    assert shard.restarted().keys() == {}


def test_a_frozen_bucket_does_not_change_while_it_is_being_stored() -> None:
    shard = Shard()
    shard.sample("a", 100.5)
    frozen = shard.index.cut()
    before = [column.copy() for column in (frozen.part_ids, frozen.start, frozen.end, frozen.active_ids, frozen.last)]
    shard.sample("a", 90.0)
    shard.sample("a", 101.9)
    shard.sample("b", 101.9)
    shard.index.cut()
    after = [frozen.part_ids, frozen.start, frozen.end, frozen.active_ids, frozen.last]
    assert all(np.array_equal(column, other) for column, other in zip(before, after, strict=True))


def test_a_bucket_without_a_sample_is_stored_too() -> None:
    shard = Shard()
    shard.cut_and_store()
    assert len(shard.store[100].rows) == 1
    assert shard.restarted().keys() == {}


def test_buckets_are_stored_in_order_or_not_at_all() -> None:
    shard = Shard()
    first, second = shard.index.cut(), shard.index.cut()
    with pytest.raises(ValueError, match="bucket 101 was stored before bucket 100"):
        shard.index.stored(second, 0)
    shard.index.stored(first, 0)
    shard.index.stored(second, 0)


def test_a_rolled_over_key_survives_the_loss_of_its_first_bucket() -> None:
    shard = Shard()
    for hour in range(100, 105):
        shard.sample("a", hour + 0.5)
        shard.cut_and_store()
    assert shard.read(101).records == (), "only a key that changed is written, not every one that is active"
    del shard.store[100]
    assert shard.restarted().keys() == {"a": (0, 100.5, None)}


def test_a_late_sample_lowers_the_start_permanently_and_never_the_end() -> None:
    shard = Shard()
    shard.sample("a", 100.5)
    shard.cut_and_store()
    shard.sample("a", 99.25)
    shard.cut_and_store()
    assert shard.restarted().keys() == {"a": (0, 99.25, None)}
    shard.cut_and_store()
    assert shard.keys() == {"a": (0, 99.25, 100.5)}, "its end is its greatest sample time, not its last sample's"


def test_a_key_whose_samples_stopped_before_a_crash_ends_at_its_last_one() -> None:
    shard = Shard()
    shard.sample("a", 100.25)
    shard.sample("a", 100.75)
    shard.cut_and_store()
    after = shard.restarted()
    after.index.cut()
    assert after.keys() == {"a": (0, 100.25, 100.75)}


@pytest.mark.parametrize(("retention", "rolls_over"), [(2, True), (30, False)])
def test_no_live_key_is_lost_when_retention_changes(retention: int, *, rolls_over: bool) -> None:
    shard = Shard(BucketPolicy(HOUR, retention=6 * HOUR, margin=4 * HOUR, stale_after=HOUR))
    for hour in range(100, 105):
        shard.sample("a", hour + 0.5)
        shard.cut_and_store()
    after = shard.restarted(BucketPolicy(HOUR, retention=retention * HOUR, margin=4 * HOUR, stale_after=HOUR))
    assert after.keys() == {"a": (0, 100.5, None)}
    after.sample("a", 105.5)
    assert (after.cut_and_store().part_ids.tolist() == [0]) == rolls_over
    assert after.restarted().keys() == {"a": (0, 100.5, None)}


@pytest.mark.parametrize(
    "wrong", [{"stale_after": 4 * HOUR}, {"stale_after": 0}, {"flush_interval": 0}, {"margin": -1}]
)
def test_a_policy_that_contradicts_itself_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"stale_after = |invalid policy"):
        replace(POLICY, **wrong)


def test_a_superseded_buckets_keys_are_written_again_at_the_next_cut() -> None:
    shard = Shard(BucketPolicy(HOUR, retention=50 * HOUR, margin=4 * HOUR, stale_after=HOUR))
    shard.sample("a", 100.5)
    shard.cut_and_store()
    ended = shard.cut_and_store()
    assert ended.part_ids.tolist() == [0]
    shard.index.supersede([101])
    assert shard.cut_and_store().part_ids.tolist() == [0]
    assert shard.cut_and_store().part_ids.tolist() == []


def test_a_key_with_two_ids_in_superseded_buckets_has_the_one_from_the_cut() -> None:
    shard = Shard()
    for hour in (100, 101, 103, 108):
        while shard.index.open.bucket < hour:
            shard.cut_and_store()
        shard.sample("a", hour + 0.5)
        shard.sample(f"only in {hour}", hour + 0.5)
    shard.cut_and_store()
    assert shard.keys()["a"] == (4, 108.5, None), "it was purged, and returned"
    # Its record from before the cut has expired. The keys that were active in 101 are still stored.
    del shard.store[100]
    again = shard.restarted(rewound_to=102)
    assert again.keys()["a"] == (0, 100.5, 103.5), "by the newest record under that id"
    assert again.keys()["only in 108"] == (5, 108.5, None), "other keys keep their only id"
    assert sorted(again.documents.fetch(BitMap(range(10))).part_ids.tolist()) == [0, 1, 2, 3, 5]
    assert 0 in again.index.active_in(101)
    assert 0 in again.cut_and_store().part_ids, "which has a record again"
    while again.index.open.bucket < 108:
        again.cut_and_store()
    again.sample("a", 108.5)
    assert again.keys()["a"] == (6, 108.5, None), "it is purged as before, and an id is assigned once"


def test_a_key_in_buckets_before_the_cut_keeps_its_id() -> None:
    """Superseded buckets of several replays may name it under any other id."""
    shard, other = Shard(), Shard()
    shard.sample("a", 100.5)
    shard.cut_and_store()
    other.sample("b", 100.5)
    other.sample("a", 100.6)
    other.cut_and_store()
    shard.cut_and_store()
    shard.store[100] = other.store[100]
    shard.index.next_part_id = 2
    assert shard.restarted(rewound_to=101).keys()["a"] == (1, 100.6, None)


def test_above_the_series_limit_new_keys_are_refused_and_known_keys_continue() -> None:
    shard = Shard()
    limited = ShardIndex(POLICY, shard.documents, open_bucket=100, next_part_id=0, series_limit=2)
    names = ["a", "b", "c", "a"]
    series = [Series([("name", name)], [(100 * HOUR, 1.0)]) for name in names]
    taken = limited.take(decoded(series))
    assert (taken.new_keys, taken.refused) == (2, 1)
    assert taken.numbers.tolist() == [0, 1, 2**32 - 1, 0]
    assert sorted(limited.open.active) == [0, 1]


def test_a_series_without_samples_adds_no_key() -> None:
    shard = Shard()
    series = [Series([("name", "a")], []), Series([("name", "b")], [(100 * HOUR, 1.0), (99 * HOUR, 2.0)])]
    taken = shard.index.take(decoded(series))
    assert taken.numbers.tolist() == [2**32 - 1, 0]
    assert shard.keys() == {"b": (0, 99.0, None)}


def test_the_last_part_id_is_assigned_and_none_after_it() -> None:
    index = ShardIndex(POLICY, DictDocuments(), open_bucket=100, next_part_id=2**32 - 2, series_limit=1000)
    index.take(decoded([Series([("name", "a")], [(100 * HOUR, 1.0)])]))
    assert list(index.open.active) == [2**32 - 2]
    with pytest.raises(OutOfPartIds, match="1 part ids from 4294967295"):
        index.take(decoded([Series([("name", "b")], [(100 * HOUR, 1.0)])]))


def test_the_rows_of_purged_keys_are_reclaimed() -> None:
    shard = Shard()
    for hour in range(100, 140):
        passing = [f"{hour}-{number}" for number in range(240)]
        staying = [f"stays since {born}" for born in range(100, hour + 1)]
        series = [Series([("name", name)], [(hour * HOUR, 1.0)]) for name in passing + staying]
        shard.index.take(decoded(series))
        shard.cut_and_store()
    assert shard.index.next_part_id == 40 * 241
    kept = len(shard.index.table)
    assert kept == 3 * 240 + 40, "of those that passed, three hours are kept"
    assert len(shard.index.columns) < 3 * kept, "and nearly ten thousand had a row"
    keys = shard.keys()
    assert len(keys) == kept
    for born in range(100, 140):
        assert keys[f"stays since {born}"] == (240 + (born - 100) * 241, born, None)


def test_numbers_count_the_keys_with_a_sample_in_the_open_bucket() -> None:
    shard = Shard()
    for name in "abc":
        shard.sample(name, 100.5)
    shard.cut_and_store()
    names = ["c", "new", "a", "c"]
    taken = shard.index.take(decoded([Series([("name", name)], [(101 * HOUR, 1.0)]) for name in names]))
    assert taken.numbers.tolist() == [0, 1, 2, 0]
    assert taken.newly_active.tolist() == [0, 1, 2]
    again = shard.index.take(decoded([Series([("name", name)], [(101 * HOUR, 1.0)]) for name in ["b", "new"]]))
    assert (again.numbers.tolist(), again.newly_active.tolist()) == ([3, 1], [0])
