"""A row with a lifetime exists at least until its end, and expires afterwards; a row without one stays.

Waiting lets the store's own clock pass: real seconds for a server, none for a store whose clock is moved by hand. So
that those seconds pass once for all tests, each is a scenario that yields what it waits for. All scenarios of a store
are begun together, each with a shard of its own, and each test goes on with one.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from strandline.clock import ManualClock
from strandline.store.jobs import JobResultOf, JobState, ResultRow
from strandline.store.protocol import Store
from strandline.store.rows import (
    CutRow,
    GroupRow,
    IndexBucketOf,
    IndexBucketRows,
    LateSamples,
    Lifetime,
    ManifestRows,
    ManifestWrite,
    Ownership,
    Segment,
    SegmentsOf,
    ShardId,
)
from support.cassandra_store import connection_to, open_stores
from support.compared_kinds import bulk_job, bulk_part, fresh_dataset
from support.store_contract import (
    IMPLEMENTATIONS,
    LASTING,
    RESOLUTION,
    Lives,
    cut,
    fresh_shard,
    group_row,
    job,
    manifest_write,
    open_memory,
    open_sqlite,
    series_key,
    state_of,
    taken,
)

pytestmark = pytest.mark.contract

Steps = Generator[Callable[[], bool], None, None]


@dataclass(frozen=True)
class Given:
    """The initial state of a scenario."""

    store: Store
    other_store: Store
    shard: ShardId
    owner: Ownership
    lives: Lives

    @property
    def lasting(self) -> Lifetime:
        """The lifetime of rows that outlast the test."""
        return self.lives.lasting()

    def commit(
        self,
        cuts: Sequence[CutRow] = (),
        groups: Sequence[GroupRow] = (),
        next_part_id: int | None = None,
        topic_id: str | None = None,
    ) -> ManifestWrite:
        """Write rows whose lifetimes start now; return what was written."""
        write = manifest_write(cuts, groups, next_part_id, topic_id, present=self.lives.clock.now_ms())
        self.store.commit(self.owner, write)
        return write


Scenario = Callable[[Given], Steps]
SCENARIOS: list[Scenario] = []


def scenario(steps: Scenario) -> Scenario:
    SCENARIOS.append(steps)
    return steps


def read(store: Store, shard: ShardId) -> ManifestRows:
    rows = store.manifest(shard)
    assert rows is not None
    return rows


@scenario
def manifest_rows_expire_one_by_one(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    expires = lives.soon()
    write = given.commit(
        cuts=(cut(6, lasting), cut(5, expires)),
        groups=(
            group_row(6, 0, lasting),
            # All fields expire, including those that most rows leave empty.
            replace(
                group_row(6, 1, expires),
                late=(LateSamples(1, 2),),
                superseded=True,
                index=IndexBucketRows(3, bytes(16), "o.1.1"),
            ),
            group_row(5, 0, lasting),
        ),
    )
    assert read(store, shard).groups == write.groups
    assert read(store, shard).cuts == write.cuts
    yield lambda: len(read(store, shard).groups) == 2 and len(read(store, shard).cuts) == 1
    assert lives.clock.now_ms() >= expires.expires - RESOLUTION
    assert read(store, shard).groups == (write.groups[0], write.groups[2])
    assert read(store, shard).cuts == write.cuts[:1]


@scenario
def a_row_written_again_has_the_lifetime_of_the_last_write(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    expires = lives.soon()
    short, long = group_row(5, 0, expires), group_row(5, 1, lasting)
    given.commit(cuts=(cut(5, expires), cut(4, expires)), groups=(short, long))
    extended, shortened = replace(short, expires=lasting.expires), replace(long, expires=lives.soon().expires)
    given.commit(cuts=(cut(5, lasting),), groups=(extended, shortened))
    yield lambda: len(read(store, shard).groups) == 1 and len(read(store, shard).cuts) == 1
    assert read(store, shard).groups == (extended,)
    assert read(store, shard).cuts == (cut(5, lasting),)


@scenario
def an_expired_row_can_be_written_again(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    given.commit(cuts=(cut(5, lives.soon(), lost_to=150),), groups=(group_row(5, 0, lives.soon()),))
    yield lambda: not read(store, shard).groups and not read(store, shard).cuts
    write = given.commit(cuts=(cut(5, lasting),), groups=(group_row(5, 0, lasting, attempt="attempt-2"),))
    assert (read(store, shard).cuts, read(store, shard).groups) == (write.cuts, write.groups)


@scenario
def the_state_remains_when_every_row_has_expired(given: Given) -> Steps:
    store, other_store, shard, lives = given.store, given.other_store, given.shard, given.lives
    given.commit(
        cuts=(cut(5, lives.soon()),),
        groups=(group_row(5, 0, lives.soon()),),
        next_part_id=1_000_000,
        topic_id="topic-2",
    )
    store.touch(given.owner, 77_000, 1)
    before = state_of(store, shard)
    yield lambda: not read(store, shard).groups and not read(store, shard).cuts
    for reader in (store, other_store):
        assert reader.state(shard) == before
        assert read(reader, shard) == ManifestRows(before, (), ())
    assert (before.next_part_id, before.topic_id, before.seen_at) == (1_000_000, "topic-2", 77_000)


@scenario
def an_owner_that_runs_longer_than_every_lifetime_is_still_the_owner(given: Given) -> Steps:
    store, shard, owner, lives = given.store, given.shard, given.owner, given.lives
    rows = (cut(1, lives.soon()),), (group_row(1, 0, lives.soon()),)
    given.commit(*rows, next_part_id=9)
    before = state_of(store, shard)
    yield lambda: not read(store, shard).groups and not read(store, shard).cuts
    assert store.state(shard) == before
    assert store.take(shard, "owner-b", None, now=2_000, topic_id="topic-1") is None
    store.touch(owner, 3_000, 1)
    given.commit(cuts=(cut(2, given.lasting),))
    assert store.state(shard) == replace(before, seen_at=3_000, beats=1)


@scenario
def segments_expire_together_with_their_write_and_others_stay(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    short, long = SegmentsOf(shard, 4, 0, "attempt-1"), SegmentsOf(shard, 4, 0, "attempt-2")
    rows = [Segment(series_key(number), 0, b"x" * 1_000) for number in range(50)]
    store.write_segments(long, rows, lasting)
    store.write_segments(short, rows, lives.soon())
    assert list(store.segments(short)) == rows
    yield lambda: not list(store.segments(short))
    assert list(store.segments(short, first=series_key(3), last=series_key(9))) == []
    assert list(store.segments(long)) == rows


@scenario
def index_buckets_expire_together_with_their_write_and_others_stay(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    short, long = IndexBucketOf(shard, 4, "attempt-1"), IndexBucketOf(shard, 4, "attempt-2")
    store.write_index_bucket(long, [b"one", b"two"], lasting)
    store.write_index_bucket(short, [b"one", b"two"], lives.soon())
    assert list(store.index_bucket(short)) == [b"one", b"two"]
    yield lambda: not list(store.index_bucket(short))
    assert list(store.index_bucket(long)) == [b"one", b"two"]


@scenario
def results_expire_together_with_their_write_and_others_stay(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    short, long = JobResultOf(shard, 4, "plan-1/1"), JobResultOf(shard, 4, "plan-1/2")
    rows = [ResultRow("summary", 0, b"one"), ResultRow("summary", 1, b"two")]
    store.write_result(long, rows, lasting)
    store.write_result(short, rows, lives.soon())
    assert list(store.result(short, "summary")) == rows
    yield lambda: not list(store.result(short, "summary"))
    assert list(store.result(long, "summary")) == rows


@scenario
def a_job_expires_and_can_be_added_again(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    short, long = job(shard, 4, lives.soon()), job(shard, 5, lasting)
    store.add_job(long)
    assert store.add_job(short)
    assert list(store.jobs(shard)) == [short, long]
    yield lambda: list(store.jobs(shard)) == [long]
    assert not store.replace_job(short, replace(short, state=JobState.LEASED, epoch=1, worker="a"))
    assert not store.remove_job(short)
    assert list(store.jobs(shard)) == [long]
    successor = job(shard, 4, lasting, plan="plan-2")
    assert store.add_job(successor)
    assert list(store.jobs(shard)) == [successor, long]


@scenario
def a_replaced_job_has_the_lifetime_of_its_successor(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    short, long, witness = job(shard, 4, lives.soon()), job(shard, 5, lasting), job(shard, 6, lives.soon())
    for added in (short, long, witness):
        store.add_job(added)
    extended = replace(short, state=JobState.LEASED, epoch=1, worker="a", life=lasting.length)
    shortened = replace(long, state=JobState.DONE, life=lives.soon().length)
    assert store.replace_job(short, extended)
    assert store.replace_job(long, shortened)
    yield lambda: len(store.jobs(shard)) == 1
    assert list(store.jobs(shard)) == [extended]


@scenario
def a_bulk_job_and_its_parts_expire_each_by_its_own_lifetime(given: Given) -> Steps:
    store, lasting, lives = given.store, given.lasting, given.lives
    dataset, soon = fresh_dataset(), lives.soon().length
    short, long = bulk_part(dataset, 1, life=soon), bulk_part(dataset, 2, life=lasting.length)
    job, longer = bulk_job(dataset, 1, life=soon), bulk_job(dataset, 2, life=lasting.length)
    assert store.add_bulk_parts([short, long])
    assert store.add_bulk_job(job)
    assert store.add_bulk_job(longer)
    yield lambda: list(store.bulk_parts(dataset, "job-1")) == [long] and list(store.bulk_jobs(dataset)) == [longer]
    assert not store.replace_bulk_part(short, replace(short, state=JobState.LEASED, epoch=1, worker="a"))
    assert not store.replace_bulk_job(job, replace(job, version=1))
    assert not store.remove_bulk_parts([short])
    assert store.bulk_part(dataset, "job-1", 1) is None
    assert store.bulk_job(dataset, job.job) is None


@scenario
def each_change_renews_the_lifetime_of_a_bulk_job_and_its_parts(given: Given) -> Steps:
    store, lasting, lives = given.store, given.lasting, given.lives
    dataset, soon = fresh_dataset(), lives.soon().length
    part, witness = bulk_part(dataset, 1, life=soon), bulk_part(dataset, 2, life=soon)
    job = bulk_job(dataset, 1, life=soon)
    assert store.add_bulk_parts([part, witness])
    assert store.add_bulk_job(job)
    extended = replace(part, state=JobState.LEASED, epoch=1, worker="a", life=lasting.length)
    running = replace(job, version=1, life=lasting.length)
    assert store.replace_bulk_part(part, extended)
    assert store.replace_bulk_job(job, running)
    yield lambda: len(store.bulk_parts(dataset, "job-1")) == 1
    assert list(store.bulk_parts(dataset, "job-1")) == [extended]
    assert list(store.bulk_jobs(dataset)) == [running]


@scenario
def rows_written_after_their_expiry_are_not_kept_forever(given: Given) -> Steps:
    store, shard, lasting, lives = given.store, given.shard, given.lasting, given.lives
    now = lives.clock.now_ms()
    segments, index = SegmentsOf(shard, 4, 0, "attempt-1"), IndexBucketOf(shard, 4, "attempt-1")
    result = JobResultOf(shard, 4, "plan-1/1")
    for expires in (Lifetime.until(now - 10_000, now), Lifetime.until(now, now)):
        given.commit((cut(4, expires), cut(5, lasting)), (group_row(4, 0, expires), group_row(5, 0, lasting)))
        store.write_segments(segments, [Segment(series_key(1), 0, b"x")], expires)
        store.write_index_bucket(index, [b"x"], expires)
        store.write_result(result, [ResultRow("summary", 0, b"x")], expires)
        yield lambda: read(store, shard).cuts == (cut(5, lasting),)
        yield lambda: read(store, shard).groups == (group_row(5, 0, lasting),)
        yield lambda: not list(store.segments(segments))
        yield lambda: not list(store.index_bucket(index))
        yield lambda: not list(store.result(result, "summary"))


@scenario
def a_lifetime_starts_with_the_write_whatever_the_writer_s_present(given: Given) -> Steps:
    """Rows of a writer whose clock is a year behind or ahead don't expire too early."""
    store, shard, lives = given.store, given.shard, given.lives
    year, now = 365 * 86_400_000, lives.clock.now_ms()
    witness = SegmentsOf(shard, 5, 0, "witness")
    store.write_segments(witness, [Segment(series_key(1), 0, b"x")], lives.soon())
    attempts = []
    for present in (now - year, now + year):
        life, where = Lifetime.from_present(present, year + LASTING), SegmentsOf(shard, 4, 0, f"attempt-{present}")
        store.write_segments(where, [Segment(series_key(1), 0, b"x")], life)
        bucket = 4 if present < now else 5
        write = manifest_write([cut(bucket, life)], [group_row(bucket, 0, life)], present=present)
        store.commit(given.owner, write)
        attempts.append(where)
    yield lambda: not list(store.segments(witness))
    assert all(len(list(store.segments(where))) == 1 for where in attempts)
    assert [row.bucket for row in read(store, shard).cuts] == [5, 4]
    assert len(read(store, shard).groups) == 2


@dataclass
class Begun:
    """Every scenario, up to its first wait."""

    lives: Lives
    first: dict[Scenario, Callable[[], bool]]
    rest: dict[Scenario, Steps]


@pytest.fixture(scope="module", params=IMPLEMENTATIONS)
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    if request.param == "sqlite":
        opening = open_sqlite(tmp_path_factory.mktemp("expiry"), ManualClock())
    elif request.param == "memory":
        opening = open_memory(ManualClock())
    else:
        opening = open_stores(connection_to(request.getfixturevalue("stack"), "contract"))
    with contextmanager(lambda: opening)() as opened:
        begun = Begun(opened.lives, {}, {})
        other_store = opened.open_another()
        for each in SCENARIOS:
            shard = fresh_shard()
            given = Given(opened.store, other_store, shard, taken(opened.store, shard), begun.lives)
            begun.rest[each] = each(given)
            begun.first[each] = next(begun.rest[each])
        yield begun


@pytest.mark.parametrize("each", SCENARIOS, ids=lambda each: each.__name__)
def test_expired_rows_are_gone_and_others_stay(begun: Begun, each: Scenario) -> None:
    begun.lives.wait_for(begun.first[each])
    for condition in begun.rest[each]:
        begun.lives.wait_for(condition)
