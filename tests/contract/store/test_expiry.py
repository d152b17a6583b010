"""What has an `expires` is gone from then on; what has none stays.

Waiting lets the store's own clock pass: real seconds for a server, none for a store whose clock is moved by hand.
"""

from dataclasses import replace

import pytest

from strandline.store.jobs import JobResultOf, JobState, ResultRow
from strandline.store.protocol import Store
from strandline.store.rows import (
    IndexBucketOf,
    IndexBucketRows,
    LateSamples,
    ManifestRows,
    ManifestWrite,
    Ownership,
    Segment,
    SegmentsOf,
    ShardId,
)
from support.store_contract import RESOLUTION, Lives, cut, group_row, job, series_key, state_of, taken

pytestmark = pytest.mark.contract


def read(store: Store, shard: ShardId) -> ManifestRows:
    rows = store.manifest(shard)
    assert rows is not None
    return rows


def test_manifest_rows_expire_one_by_one(
    store: Store, shard: ShardId, owner: Ownership, lasting: int, lives: Lives
) -> None:
    expires = lives.soon()
    write = ManifestWrite(
        cuts=(cut(6, lasting), cut(5, expires)),
        groups=(
            group_row(6, 0, lasting),
            # Every field expires, those too that most rows leave empty.
            replace(
                group_row(6, 1, expires),
                late=(LateSamples(1, 2),),
                superseded=True,
                index=IndexBucketRows(3, bytes(16), "o.1.1"),
            ),
            group_row(5, 0, lasting),
        ),
    )
    store.commit(owner, write)
    assert read(store, shard).groups == write.groups
    assert read(store, shard).cuts == write.cuts
    lives.wait_for(lambda: len(read(store, shard).groups) == 2 and len(read(store, shard).cuts) == 1)
    assert lives.clock.now_ms() >= expires - RESOLUTION
    assert read(store, shard).groups == (write.groups[0], write.groups[2])
    assert read(store, shard).cuts == write.cuts[:1]


def test_a_row_written_again_lives_as_long_as_it_says_then(
    store: Store, shard: ShardId, owner: Ownership, lasting: int, lives: Lives
) -> None:
    expires = lives.soon()
    short, long = group_row(5, 0, expires), group_row(5, 1, lasting)
    store.commit(owner, ManifestWrite(cuts=(cut(5, expires), cut(4, expires)), groups=(short, long)))
    prolonged, shortened = replace(short, expires=lasting), replace(long, expires=lives.soon())
    store.commit(owner, ManifestWrite(cuts=(cut(5, lasting),), groups=(prolonged, shortened)))
    lives.wait_for(lambda: len(read(store, shard).groups) == 1 and len(read(store, shard).cuts) == 1)
    assert read(store, shard).groups == (prolonged,)
    assert read(store, shard).cuts == (cut(5, lasting),)


def test_a_place_whose_row_expired_is_written_anew(
    store: Store, shard: ShardId, owner: Ownership, lasting: int, lives: Lives
) -> None:
    store.commit(
        owner, ManifestWrite(cuts=(cut(5, lives.soon(), lost_to=150),), groups=(group_row(5, 0, lives.soon()),))
    )
    lives.wait_for(lambda: not read(store, shard).groups and not read(store, shard).cuts)
    write = ManifestWrite(cuts=(cut(5, lasting),), groups=(group_row(5, 0, lasting, attempt="attempt-2"),))
    store.commit(owner, write)
    assert (read(store, shard).cuts, read(store, shard).groups) == (write.cuts, write.groups)


def test_the_state_stays_when_every_row_has_expired(
    store: Store, other_store: Store, shard: ShardId, lives: Lives
) -> None:
    owner = taken(store, shard)
    write = ManifestWrite(
        cuts=(cut(5, lives.soon()),),
        groups=(group_row(5, 0, lives.soon()),),
        next_part_id=1_000_000,
        topic_id="topic-2",
    )
    store.commit(owner, write)
    store.touch(owner, 77_000)
    before = state_of(store, shard)
    lives.wait_for(lambda: not read(store, shard).groups and not read(store, shard).cuts)
    for one in (store, other_store):
        assert one.state(shard) == before
        assert read(one, shard) == ManifestRows(before, (), ())
    assert (before.next_part_id, before.topic_id, before.seen_at) == (1_000_000, "topic-2", 77_000)


def test_segments_expire_together_with_their_write_and_others_stay(
    store: Store, shard: ShardId, lasting: int, lives: Lives
) -> None:
    short, long = SegmentsOf(shard, 4, 0, "attempt-1"), SegmentsOf(shard, 4, 0, "attempt-2")
    rows = [Segment(series_key(number), 0, b"x" * 1_000) for number in range(50)]
    store.write_segments(long, rows, lasting)
    store.write_segments(short, rows, lives.soon())
    assert list(store.segments(short)) == rows
    lives.wait_for(lambda: not list(store.segments(short)))
    assert list(store.segments(short, first=series_key(3), last=series_key(9))) == []
    assert list(store.segments(long)) == rows


def test_index_buckets_expire_together_with_their_write_and_others_stay(
    store: Store, shard: ShardId, lasting: int, lives: Lives
) -> None:
    short, long = IndexBucketOf(shard, 4, "attempt-1"), IndexBucketOf(shard, 4, "attempt-2")
    store.write_index_bucket(long, [b"one", b"two"], lasting)
    store.write_index_bucket(short, [b"one", b"two"], lives.soon())
    assert list(store.index_bucket(short)) == [b"one", b"two"]
    lives.wait_for(lambda: not list(store.index_bucket(short)))
    assert list(store.index_bucket(long)) == [b"one", b"two"]


def test_results_expire_together_with_their_write_and_others_stay(
    store: Store, shard: ShardId, lasting: int, lives: Lives
) -> None:
    short, long = JobResultOf(shard, 4, "plan-1/1"), JobResultOf(shard, 4, "plan-1/2")
    rows = [ResultRow("summary", 0, b"one"), ResultRow("summary", 1, b"two")]
    store.write_result(long, rows, lasting)
    store.write_result(short, rows, lives.soon())
    assert list(store.result(short, "summary")) == rows
    lives.wait_for(lambda: not list(store.result(short, "summary")))
    assert list(store.result(long, "summary")) == rows


def test_a_job_expires_and_leaves_its_place_free(store: Store, shard: ShardId, lasting: int, lives: Lives) -> None:
    short, long = job(shard, 4, lives.soon()), job(shard, 5, lasting)
    store.add_job(long)
    assert store.add_job(short)
    assert list(store.jobs(shard)) == [short, long]
    lives.wait_for(lambda: list(store.jobs(shard)) == [long])
    assert not store.replace_job(short, replace(short, state=JobState.LEASED, epoch=1, worker="a"))
    assert not store.remove_job(short)
    assert list(store.jobs(shard)) == [long]
    successor = job(shard, 4, lasting, plan="plan-2")
    assert store.add_job(successor)
    assert list(store.jobs(shard)) == [successor, long]


def test_a_replaced_job_lives_as_long_as_its_successor_says(
    store: Store, shard: ShardId, lasting: int, lives: Lives
) -> None:
    short, long, witness = job(shard, 4, lives.soon()), job(shard, 5, lasting), job(shard, 6, lives.soon())
    for one in (short, long, witness):
        store.add_job(one)
    prolonged = replace(short, state=JobState.LEASED, epoch=1, worker="a", expires=lasting)
    shortened = replace(long, state=JobState.DONE, expires=lives.soon())
    assert store.replace_job(short, prolonged)
    assert store.replace_job(long, shortened)
    lives.wait_for(lambda: len(store.jobs(shard)) == 1)
    assert list(store.jobs(shard)) == [prolonged]


def test_what_was_written_too_late_is_not_kept_for_ever(
    store: Store, shard: ShardId, owner: Ownership, lasting: int, lives: Lives
) -> None:
    past = lives.clock.now_ms() - 10_000
    segments, index = SegmentsOf(shard, 4, 0, "attempt-1"), IndexBucketOf(shard, 4, "attempt-1")
    result = JobResultOf(shard, 4, "plan-1/1")
    for expires in (past, lives.clock.now_ms()):
        rows = (cut(4, expires), cut(5, lasting)), (group_row(4, 0, expires), group_row(5, 0, lasting))
        store.commit(owner, ManifestWrite(*rows))
        store.write_segments(segments, [Segment(series_key(1), 0, b"x")], expires)
        store.write_index_bucket(index, [b"x"], expires)
        store.write_result(result, [ResultRow("summary", 0, b"x")], expires)
        lives.wait_for(lambda: read(store, shard).cuts == (cut(5, lasting),))
        lives.wait_for(lambda: read(store, shard).groups == (group_row(5, 0, lasting),))
        lives.wait_for(lambda: not list(store.segments(segments)))
        lives.wait_for(lambda: not list(store.index_bucket(index)))
        lives.wait_for(lambda: not list(store.result(result, "summary")))
