"""What is committed to a manifest is read from it, completely and in order."""

from dataclasses import replace

import pytest

from strandline.store.batches import MAX_BATCH_BYTES, batches, row_bytes
from strandline.store.late_samples import MAX_COUNTS
from strandline.store.protocol import Store
from strandline.store.rows import (
    CutRow,
    GroupRow,
    IndexBucketRows,
    LateSamples,
    Lifetime,
    ManifestRows,
    Ownership,
    RecordIdentity,
    ShardId,
)
from support.store_contract import LASTING, PRESENT, cut, fresh_shard, group_row, manifest_write, state_of, taken

pytestmark = pytest.mark.contract


def read(store: Store, shard: ShardId, *, first: int | None = None, last: int | None = None) -> ManifestRows:
    rows = store.manifest(shard, first=first, last=last)
    assert rows is not None
    return rows


def test_a_shard_without_rows_has_its_state_only(store: Store, shard: ShardId, owner: Ownership) -> None:
    assert read(store, shard) == ManifestRows(state_of(store, shard), (), ())
    assert read(store, shard).state.owner == owner.owner


def test_rows_are_read_newest_bucket_first_and_groups_ascending(
    store: Store, other_store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    # Numbers whose order as text would be another one.
    for bucket in (9, 100, 11, 472_222):
        groups = tuple(group_row(bucket, group, lasting) for group in (15, 2, 0, 10))
        store.commit(owner, manifest_write(cuts=(cut(bucket, lasting),), groups=groups))
    for rows in (read(store, shard), read(other_store, shard)):
        assert rows.cuts == tuple(cut(bucket, lasting) for bucket in (472_222, 100, 11, 9))
        assert rows.groups == tuple(
            group_row(bucket, group, lasting) for bucket in (472_222, 100, 11, 9) for group in (0, 2, 10, 15)
        )


@pytest.fixture
def four_buckets(store: Store, owner: Ownership, lasting: Lifetime) -> None:
    """Buckets 2 to 5, with two groups each."""
    write = manifest_write(
        cuts=tuple(cut(bucket, lasting) for bucket in (2, 3, 4, 5)),
        groups=tuple(group_row(bucket, group, lasting) for bucket in (2, 3, 4, 5) for group in (0, 1)),
    )
    store.commit(owner, write)


@pytest.mark.usefixtures("four_buckets")
@pytest.mark.parametrize(
    ("ends", "buckets"),
    [
        ((None, None), (5, 4, 3, 2)),
        ((3, None), (5, 4, 3)),
        ((None, 3), (3, 2)),
        ((3, 4), (4, 3)),
        ((4, 4), (4,)),
        ((0, 1), ()),
        ((6, 9), ()),
        ((4, 3), ()),
        ((0, 9), (5, 4, 3, 2)),
    ],
)
def test_a_range_of_buckets_includes_both_its_ends(
    store: Store,
    shard: ShardId,
    ends: tuple[int | None, int | None],
    buckets: tuple[int, ...],
) -> None:
    rows = read(store, shard, first=ends[0], last=ends[1])
    assert [row.bucket for row in rows.cuts] == list(buckets)
    assert [(row.bucket, row.group) for row in rows.groups] == [
        (bucket, group) for bucket in buckets for group in (0, 1)
    ]
    assert rows.state == state_of(store, shard)


def test_a_bucket_may_have_a_cut_and_no_groups_or_groups_and_no_cut(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    store.commit(owner, manifest_write(cuts=(cut(3, lasting),), groups=(group_row(2, 0, lasting),)))
    rows = read(store, shard)
    assert rows.cuts == (cut(3, lasting),)
    assert rows.groups == (group_row(2, 0, lasting),)


def test_committing_the_same_again_changes_nothing(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    write = manifest_write(
        cuts=(cut(3, lasting, lost_to=150),),
        groups=tuple(group_row(3, group, lasting) for group in range(16)),
        next_part_id=12,
        topic_id="topic-2",
    )
    store.commit(owner, write)
    once = read(store, shard)
    store.commit(owner, write)
    assert read(store, shard) == once
    assert (once.cuts, once.groups) == (write.cuts, write.groups)


def test_committing_nothing_changes_nothing(store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime) -> None:
    store.commit(owner, manifest_write(cuts=(cut(3, lasting),), next_part_id=4))
    before = read(store, shard)
    store.commit(owner, manifest_write())
    assert read(store, shard) == before


def test_the_next_part_id_only_rises(store: Store, shard: ShardId, owner: Ownership) -> None:
    for committed, stored in ((10, 10), (10, 10), (9, 10), (0, 10), (None, 10), (11, 11), (2**32, 2**32), (5, 2**32)):
        store.commit(owner, manifest_write(next_part_id=committed))
        assert state_of(store, shard).next_part_id == stored


def test_rows_beside_a_lower_next_part_id_are_committed(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    store.commit(owner, manifest_write(next_part_id=10))
    write = manifest_write(cuts=(cut(3, lasting),), groups=(group_row(3, 0, lasting),), next_part_id=4)
    store.commit(owner, write)
    rows = read(store, shard)
    assert rows.state.next_part_id == 10
    assert (rows.cuts, rows.groups) == (write.cuts, write.groups)


def test_the_topic_id_changes_by_a_commit_that_names_one(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    reset = CutRow(9, 0, 0, lasting.expires, reset=True)
    store.commit(owner, manifest_write(cuts=(reset,), topic_id="topic-2"))
    store.commit(owner, manifest_write(next_part_id=1))
    rows = read(store, shard)
    assert rows.state.topic_id == "topic-2"
    assert rows.cuts == (reset,)


def test_a_commit_leaves_epoch_owner_and_seen_at_as_they_are(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    store.touch(owner, 44_000, 1)
    before = state_of(store, shard)
    store.commit(owner, manifest_write(cuts=(cut(1, lasting),)))
    assert store.state(shard) == before
    store.touch(owner, None, 2)
    store.commit(owner, manifest_write(cuts=(cut(2, lasting),)))
    assert store.state(shard) == replace(before, seen_at=None, beats=2)


def full_row(bucket: int, group: int, life: Lifetime) -> GroupRow:
    """A group row with something in every field."""
    return replace(
        group_row(bucket, group, life, attempt="attempt-2"),
        late=(LateSamples(-8_192, 3, hours=4_096), LateSamples(472_220, 7), LateSamples(472_221, 1)),
        superseded=True,
        index=IndexBucketRows(12, bytes(16), "o.1.1"),
    )


def empty_row(bucket: int, group: int, life: Lifetime) -> GroupRow:
    """The group row of a bucket without a sample."""
    return GroupRow(
        bucket=bucket,
        group=group,
        attempt="attempt-3",
        segments=0,
        series=0,
        samples=0,
        least_time=None,
        greatest_time=None,
        checksum=b"",
        codec_version=1,
        data_expires=1_999_999_999_999,
        expires=life.expires,
        written_by="",
        written_at=0,
    )


def test_a_group_row_replaces_the_previous_one_completely(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    for row in (
        empty_row(3, 1, lasting),
        full_row(3, 1, lasting),
        group_row(3, 1, lasting),
        full_row(3, 1, Lifetime.from_present(PRESENT, LASTING + 1_000_000)),
        empty_row(3, 1, lasting),
    ):
        store.commit(owner, manifest_write(groups=(row,)))
        assert read(store, shard).groups == (row,)


def test_a_cut_row_replaces_the_previous_one_completely(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    mark = RecordIdentity(offset=2**63 - 2, time=-1, leader_epoch=7, checksum=2**63 - 1)
    for row in (
        CutRow(3, 0, 0, lasting.expires),
        CutRow(3, 10, 2**63 - 1, lasting.expires + 5_000, lost_to=2**62, reset=True, last=mark),
        CutRow(3, 10, 20, lasting.expires, lost_to=10, last=replace(mark, leader_epoch=None)),
        CutRow(3, 10, 20, lasting.expires, closed_early=True),
        CutRow(3, 10, 20, lasting.expires),
    ):
        store.commit(owner, manifest_write(cuts=(row,)))
        assert read(store, shard).cuts == (row,)


def test_an_index_bucket_of_no_rows_is_not_the_same_as_none(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    none = empty_row(3, 0, lasting)
    some = replace(empty_row(3, 1, lasting), index=IndexBucketRows(0, b"", ""))
    store.commit(owner, manifest_write(groups=(none, some)))
    assert read(store, shard).groups == (none, some)


def test_samples_may_be_late_for_thousands_of_hours(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    late = tuple(LateSamples(hour, hour * 1_000_003) for hour in range(464_000, 472_000))
    row = replace(group_row(3, 1, lasting), late=late)
    store.commit(owner, manifest_write(groups=(row,)))
    assert read(store, shard).groups == (row,)


def test_a_commit_of_the_largest_permitted_batch_is_accepted(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    """Rows as large as a shard writes them, as many as fit into one batch by their assumed size."""
    ranges = tuple(LateSamples(2_048 * number, 2**62, hours=2_048) for number in range(MAX_COUNTS // 2))
    late = (*ranges, *(LateSamples(10**6 + number, 2**62) for number in range(MAX_COUNTS // 2)))
    index = IndexBucketRows(2**31 - 1, bytes(range(16)), "o" * 60)
    row = replace(group_row(0, 0, lasting, attempt="a" * 60), late=late, index=index, written_by="h" * 255)
    most = MAX_BATCH_BYTES // row_bytes(row)
    rows = [replace(row, group=number) for number in range(most + 1)]
    largest = next(batches(rows, row_bytes, max_rows=10**6))
    assert len(largest) == most
    store.commit(owner, manifest_write(groups=largest))
    assert read(store, shard).groups == tuple(largest)


def test_a_commit_may_have_a_thousand_group_rows(
    store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime
) -> None:
    rows = tuple(
        replace(group_row(bucket, group, lasting), superseded=True) for bucket in range(50) for group in range(20)
    )
    assert len(rows) == 1_000
    store.commit(owner, manifest_write(groups=rows))
    assert set(read(store, shard).groups) == set(rows)


def test_many_more_rows_than_a_page_are_read(store: Store, shard: ShardId, owner: Ownership, lasting: Lifetime) -> None:
    for bucket in range(0, 6_000, 1_000):
        store.commit(
            owner, manifest_write(cuts=tuple(cut(number, lasting) for number in range(bucket, bucket + 1_000)))
        )
    assert [row.bucket for row in read(store, shard).cuts] == list(range(5_999, -1, -1))
    assert [row.bucket for row in read(store, shard, first=990, last=1_010).cuts] == list(range(1_010, 989, -1))


def test_a_shards_rows_are_not_visible_in_another_shard(store: Store, lasting: Lifetime) -> None:
    here = fresh_shard()
    neighbour, elsewhere = ShardId(here.dataset, here.shard + 1), ShardId(f"{here.dataset}-2", here.shard)
    for number, shard in enumerate((here, neighbour, elsewhere)):
        store.commit(
            taken(store, shard),
            manifest_write(
                cuts=(cut(3, lasting, end=number),),
                groups=(group_row(3, 0, lasting, attempt=f"attempt-{number}"),),
                next_part_id=number,
            ),
        )
    for number, shard in enumerate((here, neighbour, elsewhere)):
        rows = read(store, shard)
        assert [row.end for row in rows.cuts] == [number]
        assert [row.attempt for row in rows.groups] == [f"attempt-{number}"]
        assert rows.state.next_part_id == number
