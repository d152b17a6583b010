"""Replay jobs change by compare-and-set only: of two concurrent changes, one succeeds."""

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle, repeat

import pytest

from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import Lifetime, ShardId
from support.store_contract import fresh_shard, job, race

pytestmark = pytest.mark.contract


def leased(before: Job, worker: str) -> Job:
    return replace(before, state=JobState.LEASED, epoch=before.epoch + 1, worker=worker, leased_until=120_000)


def replace_at(here: Store, before: Job, after: Job | None) -> bool:
    return here.remove_job(before) if after is None else here.replace_job(before, after)


def test_a_shard_without_jobs_has_none(store: Store, shard: ShardId) -> None:
    assert list(store.jobs(shard)) == []


def test_jobs_are_read_in_the_order_of_their_buckets(
    store: Store, other_store: Store, shard: ShardId, lasting: Lifetime
) -> None:
    for bucket in (100, 9, 472_222, 11):
        assert store.add_job(job(shard, bucket, lasting))
    ordered = [job(shard, bucket, lasting) for bucket in (9, 11, 100, 472_222)]
    assert list(store.jobs(shard)) == ordered
    assert list(other_store.jobs(shard)) == ordered


def test_every_field_of_a_job_is_kept(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    empty = Job(shard, 0, "p", 0, 0, frozenset(), wants_keys=False, life=lasting.length)
    full = Job(
        shard,
        1,
        "plan",
        start=2**62,
        end=2**63 - 1,
        groups=frozenset(range(256)),
        wants_keys=True,
        life=lasting.length + 86_400_000,
        state=JobState.FAILED,
        epoch=9,
        worker="worker-ü",
        leased_until=1_700_000_000_000,
        failures=4,
        reason="offset 12 can't be decoded: «…»",
        renewals=12_345,
    )
    assert store.add_job(empty)
    assert store.add_job(full)
    assert list(store.jobs(shard)) == [empty, full]


def test_a_job_is_not_overwritten(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    first = job(shard, 5, lasting)
    assert store.add_job(first)
    for other in (
        job(shard, 5, lasting, plan="plan-2"),
        replace(first, end=first.end + 1),
        replace(first, groups=frozenset({1})),
        replace(first, failures=1),
    ):
        assert not store.add_job(other)
    assert list(store.jobs(shard)) == [first]


def test_adding_an_identical_job_again_succeeds(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    first = job(shard, 5, lasting)
    assert store.add_job(first)
    assert store.add_job(first)
    assert list(store.jobs(shard)) == [first]


def test_a_job_that_has_advanced_is_not_reset(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    first = job(shard, 5, lasting)
    store.add_job(first)
    assert store.replace_job(first, leased(first, "a"))
    assert not store.add_job(first)
    assert list(store.jobs(shard)) == [leased(first, "a")]


def test_a_job_goes_from_state_to_state(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    pending = job(shard, 5, lasting)
    store.add_job(pending)
    lease = leased(pending, "a")
    renewed = replace(lease, leased_until=240_000, renewals=1)
    failed = replace(renewed, state=JobState.PENDING, worker="", leased_until=0, failures=1, reason="time-out")
    again = leased(failed, "b")
    done = replace(again, state=JobState.DONE, leased_until=0, reason="", life=lasting.length + 60_000)
    for before, after in ((pending, lease), (lease, renewed), (renewed, failed), (failed, again), (again, done)):
        assert store.replace_job(before, after)
        assert list(store.jobs(shard)) == [after]
        assert not store.replace_job(before, after), "the job no longer equals `before`"


def change_plan(before: Job) -> Job:
    return replace(before, plan="plan-2")


def change_state(before: Job) -> Job:
    return replace(before, state=JobState.DONE)


def change_epoch(before: Job) -> Job:
    return replace(before, epoch=before.epoch + 1)


def change_worker(before: Job) -> Job:
    return replace(before, worker="b")


def change_lease(before: Job) -> Job:
    return replace(before, leased_until=before.leased_until + 1)


def change_renewals(before: Job) -> Job:
    """A renewal by a clock that stopped, or was set back."""
    return replace(before, renewals=before.renewals + 1)


@pytest.mark.parametrize(
    "change", [change_plan, change_state, change_epoch, change_worker, change_lease, change_renewals]
)
def test_a_job_that_changed_is_neither_replaced_nor_removed(
    store: Store, shard: ShardId, lasting: Lifetime, change: Callable[[Job], Job]
) -> None:
    outdated = leased(job(shard, 5, lasting), "a")
    stored = change(outdated)
    assert store.add_job(stored)
    assert not store.replace_job(outdated, replace(outdated, reason="mine"))
    assert not store.remove_job(outdated)
    assert list(store.jobs(shard)) == [stored]


def test_columns_that_are_not_compared_may_differ(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    stored = replace(job(shard, 5, lasting), failures=3, reason="slow")
    seen = replace(stored, failures=0, reason="", start=0, end=1, groups=frozenset(), wants_keys=False)
    store.add_job(stored)
    after = replace(stored, groups=frozenset({7}), start=1_500, failures=4)
    assert store.replace_job(seen, after)
    assert list(store.jobs(shard)) == [after]
    assert store.remove_job(replace(seen, life=lasting.length + 1))
    assert list(store.jobs(shard)) == []


def test_a_missing_job_is_neither_replaced_nor_removed(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    missing = job(shard, 5, lasting)
    assert not store.replace_job(missing, leased(missing, "a"))
    assert not store.remove_job(missing)
    assert list(store.jobs(shard)) == []


def test_a_removed_job_is_deleted_and_can_be_added_again(store: Store, shard: ShardId, lasting: Lifetime) -> None:
    first, neighbour = job(shard, 5, lasting), job(shard, 6, lasting)
    second = replace(job(shard, 5, lasting, plan="plan-2"), groups=frozenset())
    store.add_job(first)
    store.add_job(neighbour)
    assert store.remove_job(first)
    assert not store.remove_job(first)
    assert list(store.jobs(shard)) == [neighbour]
    assert store.add_job(second)
    assert list(store.jobs(shard)) == [second, neighbour]


def test_jobs_of_other_shards_are_separate(store: Store, lasting: Lifetime) -> None:
    here = fresh_shard()
    shards = [here, ShardId(here.dataset, here.shard + 1), ShardId(f"{here.dataset}-2", here.shard)]
    for shard in shards:
        assert store.add_job(job(shard, 5, lasting))
    assert store.remove_job(job(here, 5, lasting))
    assert [list(store.jobs(shard)) for shard in shards] == [[], *([job(shard, 5, lasting)] for shard in shards[1:])]


def test_exactly_one_of_concurrent_workers_leases_a_job(
    store: Store, other_store: Store, shard: ShardId, lasting: Lifetime
) -> None:
    for bucket in range(5):
        pending = job(shard, bucket, lasting)
        store.add_job(pending)
        leases = [leased(pending, f"worker-{number}") for number in range(8)]
        won = race(replace_at, cycle([store, other_store]), repeat(pending), leases)
        assert won.count(True) == 1
        assert list(store.jobs(shard))[bucket] == leases[won.index(True)]


def test_exactly_one_of_concurrent_plans_adds_a_job(
    store: Store, other_store: Store, shard: ShardId, lasting: Lifetime
) -> None:
    for bucket in range(5):
        plans = [job(shard, bucket, lasting, plan=f"plan-{number}") for number in range(6)]
        added = race(lambda here, plan: here.add_job(plan), cycle([store, other_store]), plans)
        assert added.count(True) == 1
        assert list(store.jobs(shard))[bucket] == plans[added.index(True)]


def test_a_job_that_is_concurrently_renewed_and_removed_is_one_or_the_other(
    store: Store, other_store: Store, shard: ShardId, lasting: Lifetime
) -> None:
    for bucket in range(5):
        lease = leased(job(shard, bucket, lasting), "a")
        renewed = replace(lease, leased_until=240_000)
        store.add_job(lease)
        was_renewed, was_removed = race(replace_at, [store, other_store], repeat(lease), [renewed, None])
        assert was_renewed != was_removed
        assert [stored for stored in store.jobs(shard) if stored.bucket == bucket] == ([renewed] if was_renewed else [])
