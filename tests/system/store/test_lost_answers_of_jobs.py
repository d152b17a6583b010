"""Whether a job was leased, given up or removed is known also when the answer was lost."""

from dataclasses import replace

import pytest

from strandline.store.cassandra.store import CassandraStore
from strandline.store.jobs import Job, JobState
from strandline.store.rows import Lifetime, ShardId
from support.cassandra_store import LossySession, Lost
from support.store_contract import job

pytestmark = pytest.mark.system

CHANGE = 'UPDATE "store_tests".jobs'
REMOVE = 'DELETE FROM "store_tests".jobs'


@pytest.fixture
def pending(other_store: CassandraStore, shard: ShardId, lasting: Lifetime) -> Job:
    """A job that waits for a worker."""
    pending = job(shard, 5, lasting)
    assert other_store.add_job(pending)
    return pending


def leased(pending: Job, worker: str) -> Job:
    return replace(pending, state=JobState.LEASED, epoch=pending.epoch + 1, worker=worker, leased_until=120_000)


@pytest.mark.parametrize("applied", [True, False])
def test_a_job_whose_adding_was_lost_is_there(
    store: CassandraStore, session: LossySession, shard: ShardId, lasting: Lifetime, applied: bool
) -> None:
    session.lose(CHANGE, Lost(applied))
    assert store.add_job(job(shard, 5, lasting))
    assert store.jobs(shard) == [job(shard, 5, lasting)]


def test_a_job_whose_place_was_taken_meanwhile_is_not_there(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, shard: ShardId, lasting: Lifetime
) -> None:
    other = job(shard, 5, lasting, plan="plan-2")
    session.lose(CHANGE, Lost(applied=False, then=lambda: other_store.add_job(other)))
    assert not store.add_job(job(shard, 5, lasting))
    assert store.jobs(shard) == [other]


@pytest.mark.parametrize("applied", [True, False])
def test_a_lease_whose_answer_was_lost_is_found_or_taken_again(
    store: CassandraStore, session: LossySession, pending: Job, applied: bool
) -> None:
    session.lose(CHANGE, Lost(applied))
    assert store.replace_job(pending, leased(pending, "a"))
    assert session.count(CHANGE) == (1 if applied else 2)
    assert store.jobs(pending.shard) == [leased(pending, "a")]


def test_a_lease_that_another_got_meanwhile_is_not_ours(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, pending: Job
) -> None:
    session.lose(CHANGE, Lost(applied=False, then=lambda: other_store.replace_job(pending, leased(pending, "b"))))
    assert not store.replace_job(pending, leased(pending, "a"))
    assert store.jobs(pending.shard) == [leased(pending, "b")]


def test_another_s_lease_is_not_ours_even_if_it_says_the_very_same(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, pending: Job
) -> None:
    same = leased(pending, "a")
    session.lose(CHANGE, Lost(applied=False, then=lambda: other_store.replace_job(pending, same)))
    assert not store.replace_job(pending, same)


def test_a_job_that_vanished_meanwhile_is_not_leased(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, pending: Job
) -> None:
    session.lose(CHANGE, Lost(applied=False, then=lambda: other_store.remove_job(pending)))
    assert not store.replace_job(pending, leased(pending, "a"))
    assert store.jobs(pending.shard) == []


@pytest.mark.parametrize("applied", [True, False])
def test_a_job_whose_removal_was_lost_is_gone(
    store: CassandraStore, session: LossySession, pending: Job, applied: bool
) -> None:
    session.lose(REMOVE, Lost(applied))
    assert store.remove_job(pending)
    assert session.count(REMOVE) == (1 if applied else 2)
    assert store.jobs(pending.shard) == []


def test_a_job_that_was_leased_meanwhile_is_not_removed(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, pending: Job
) -> None:
    session.lose(REMOVE, Lost(applied=False, then=lambda: other_store.replace_job(pending, leased(pending, "b"))))
    assert not store.remove_job(pending)
    assert store.jobs(pending.shard) == [leased(pending, "b")]
