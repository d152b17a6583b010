"""The local copy of a shard's index restores the index as of its cut."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyroaring import BitMap

from strandline.index.cut_snapshot import UnknownSnapshot, decode_snapshot, encode_snapshot
from strandline.index.local_copy import CopyUnusable, save_copy, saved_identity
from strandline.index.part_columns import LIVE, PartRows
from support.shard_with_copy import FIRST, HOUR, POLICY, Shard, identity, opened, refused

pytestmark = pytest.mark.unit


def test_a_copy_restores_the_index_as_of_its_cut(shard: Shard) -> None:
    shard.take("a", "b", "c")
    shard.pass_an_hour()
    shard.take("b", "d")
    shard.pass_an_hour()
    before = shard.state()
    shard.reopen(FIRST + 1)
    assert shard.state() == before
    assert shard.documents() == {0: "a", 1: "b", 2: "c", 3: "d"}
    assert shard.index.columns.rows.end.tolist() == [FIRST * HOUR, LIVE, FIRST * HOUR, LIVE]


def test_a_copy_with_later_buckets_restores_the_same_index_as_without_a_crash(shard: Shard) -> None:
    shard.take("a", "b")
    frozen, snapshot = shard.cut()
    shard.take("b", "c", late=1)
    shard.store(frozen)
    shard.save(snapshot)
    shard.take("d")
    shard.cut()
    shard.take("a", late=2)
    without_a_crash = shard.state()
    shard.reopen()
    shard.take("b", "c", late=1)
    shard.take("d")
    shard.cut()
    shard.take("a", late=2)
    assert shard.state() == without_a_crash


def test_a_copy_without_keys_is_valid(shard: Shard) -> None:
    shard.pass_an_hour()
    shard.reopen()
    assert shard.documents() == {}
    shard.take("a")
    assert shard.documents() == {0: "a"}


def test_a_snapshot_survives_as_bytes(shard: Shard) -> None:
    shard.take("a", "b")
    shard.cut()
    shard.take("c")
    _, snapshot = shard.cut()
    read = decode_snapshot(np.frombuffer(encode_snapshot(snapshot), dtype=np.uint8))
    for name in set(PartRows.__slots__) - {"number"}:
        assert np.array_equal(getattr(read.keys, name), getattr(snapshot.keys, name)), name
    assert (read.bucket, read.next_part_id, read.retention) == (FIRST + 1, 3, POLICY.retention)
    assert read.active == snapshot.active == {FIRST: BitMap([0, 1]), FIRST + 1: BitMap([2])}
    assert read.active == {FIRST: BitMap([0, 1]), FIRST + 1: BitMap([2])}


def test_a_snapshot_of_another_version_is_refused(shard: Shard) -> None:
    data = bytearray(encode_snapshot(shard.cut()[1]))
    data[7] += 1
    with pytest.raises(UnknownSnapshot, match="the snapshot begins with"):
        decode_snapshot(np.frombuffer(data, dtype=np.uint8))


def test_a_snapshot_stays_as_it_was_at_the_cut(shard: Shard) -> None:
    shard.take("a", "b")
    _, snapshot = shard.cut()
    before = encode_snapshot(snapshot)
    shard.take("a", "c", late=5)
    for _ in range(5):
        shard.cut()
    assert encode_snapshot(snapshot) == before


def test_a_snapshot_is_refused_once_the_next_bucket_has_a_sample(shard: Shard) -> None:
    shard.take("a")
    shard.cut()
    shard.take("a")
    with pytest.raises(ValueError, match=f"bucket {FIRST + 1} already has samples"):
        shard.index.snapshot()


def test_a_snapshot_is_not_saved_under_another_bucket(shard: Shard) -> None:
    _, snapshot = shard.cut()
    with pytest.raises(ValueError, match="can't be saved as bucket 1"):
        save_copy(shard.folder, shard.lucene, snapshot, identity(1))


def test_keys_from_after_the_cut_are_dropped_and_the_replay_assigns_their_ids_again(shard: Shard) -> None:
    shard.take("a", "b")
    frozen, snapshot = shard.cut()
    shard.take("young", "younger")
    shard.store(frozen)
    shard.save(snapshot)
    assert shard.documents() == {0: "a", 1: "b", 2: "young", 3: "younger"}
    shard.reopen()
    assert shard.documents() == {0: "a", 1: "b"}
    assert len(shard.index.table) == 2
    # A replay on Spark has another order.
    shard.take("younger", "a", "young")
    assert shard.documents() == {0: "a", 1: "b", 2: "younger", 3: "young"}


@pytest.mark.parametrize(
    "manifest",
    [
        {"dataset": "other"},
        {"topic_id": "topic-2"},
        {"shard": 4},
        {"bucket": FIRST + 1},
        {"bucket": FIRST - 1},
        {"attempt": "another/8/1000"},
    ],
    ids=str,
)
def test_a_copy_that_the_manifest_does_not_name_is_refused(shard: Shard, manifest: dict[str, object]) -> None:
    shard.take("a")
    shard.pass_an_hour()
    shard.lucene.close()
    assert saved_identity(shard.folder) == identity()
    assert "was expected" in refused(shard.folder, replace(identity(), **manifest))
    assert opened(shard.folder, identity()) == {0: "a"}


def test_a_missing_copy_is_reported(shard: Shard, tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere") == "there is none"
    with pytest.raises(CopyUnusable, match="there is none"):
        saved_identity(shard.folder)
    assert not (tmp_path / "nowhere").exists()


def test_a_commit_without_an_identity_is_refused(shard: Shard) -> None:
    shard.lucene.commit({"dataset": "metrics"})
    shard.lucene.close()
    assert "has no valid identity" in refused(shard.folder)


def test_a_purged_key_does_not_come_back_with_its_document(shard: Shard) -> None:
    shard.take("gone", late=3)  # It ends with the next bucket, before what is kept: purged at that cut.
    shard.take("a")
    shard.pass_an_hour()
    _, snapshot = shard.cut()
    assert shard.index.columns.rows.present().tolist() == [False, True]
    shard.save(snapshot)  # Its document is still there: the bucket has not been reported as stored.
    assert shard.documents() == {0: "gone", 1: "a"}
    shard.reopen(FIRST + 1)
    assert shard.documents() == {1: "a"}
    assert len(shard.index.table) == 1


def test_a_purged_key_that_returned_has_one_id_and_one_document(shard: Shard) -> None:
    shard.take("gone", late=3)
    shard.take("a")
    shard.pass_an_hour()
    _, before_it_is_back = shard.cut()
    shard.take("gone")
    assert shard.documents() == {0: "gone", 1: "a", 2: "gone"}
    shard.save(before_it_is_back)
    shard.reopen(FIRST + 1)
    assert shard.documents() == {1: "a"}
    shard.take("gone")
    shard.pass_an_hour()
    shard.reopen(FIRST + 2)
    assert shard.documents() == {1: "a", 2: "gone"}
    shard.take("gone")
    assert shard.index.next_part_id == 3


def test_a_key_that_was_purged_at_a_later_cut_still_has_its_document(shard: Shard) -> None:
    shard.take("a", "leaving", late=3)
    first = shard.cut()
    shard.take("a")
    second = shard.cut()
    assert shard.index.columns.rows.present().tolist() == [True, False]
    shard.store(first[0])
    shard.save(first[1])
    shard.reopen()
    assert shard.documents() == {0: "a", 1: "leaving"}
    assert second[0].part_ids.tolist() == [1]


def test_a_copy_with_a_key_that_has_no_document_is_refused(shard: Shard) -> None:
    shard.take("a", "b")
    shard.lucene.delete(BitMap([1]))
    _, snapshot = shard.cut()
    shard.save(snapshot)
    shard.lucene.close()
    assert refused(shard.folder) == "1 of its 2 keys have no document"


def test_a_shorter_retention_purges_and_a_longer_one_requires_the_store(shard: Shard) -> None:
    shard.take("old", late=2)
    shard.take("a")
    shard.pass_an_hour()
    shard.take("a")
    shard.pass_an_hour()
    shard.lucene.close()
    assert "purged by a retention" in refused(shard.folder, identity(FIRST + 1), replace(POLICY, retention=4 * HOUR))
    shard.reopen(FIRST + 1, replace(POLICY, retention=2 * HOUR))
    assert shard.documents() == {1: "a"}


def test_newer_buckets_are_applied_onto_a_copy(shard: Shard) -> None:
    shard.take("gone", late=3)
    shard.take("stays", "ends", "changes id", late=2)
    shard.take("stays", "ends")
    shard.pass_an_hour()
    newer = [
        shard.next_bucket("stays", "new", "ends"),
        shard.next_bucket("stays"),
        shard.next_bucket("stays", "changes id"),
    ]
    before = shard.state()
    assert shard.documents() == {1: "stays", 2: "ends", 4: "new", 5: "changes id"}
    shard.reopen(FIRST, newer=newer[::-1])
    assert shard.documents() == {1: "stays", 2: "ends", 4: "new", 5: "changes id"}
    assert shard.state() == before
