"""Whether a job or a part was added, leased, released or removed is determined even if the answer was lost."""

from typing import Any

import pytest

from strandline.store.cassandra.compared_rows import MAX_BATCH_ROWS
from strandline.store.cassandra.store import CassandraStore
from support.cassandra_store import LossySession, Lost
from support.compared_kinds import BulkJobs, BulkParts, Kind, ReplayJobs, bulk_part, fresh_dataset

pytestmark = pytest.mark.system

REMOVE = 'DELETE FROM "store_tests".'


@pytest.fixture(params=[ReplayJobs, BulkJobs, BulkParts], ids=lambda kind: kind.table)
def kind(request: pytest.FixtureRequest) -> Kind[Any]:
    return request.param()


def change(kind: Kind[Any]) -> str:
    """The beginning of a request that adds a row or changes it."""
    return f'UPDATE "store_tests".{kind.table} '


def remove(kind: Kind[Any]) -> str:
    """The beginning of a request that removes a row."""
    return REMOVE + kind.table + " "


@pytest.fixture
def pending(other_store: CassandraStore, kind: Kind[Any]) -> Any:
    """A row that waits for a worker."""
    pending = kind.fresh()
    assert kind.add(other_store, pending)
    return pending


@pytest.mark.parametrize("applied", [True, False])
def test_a_row_whose_answer_to_adding_was_lost_exists(
    store: CassandraStore, session: LossySession, kind: Kind[Any], applied: bool
) -> None:
    one = kind.fresh()
    session.lose(change(kind), Lost(applied))
    assert kind.add(store, one)
    assert session.count(change(kind)) == (1 if applied else 2)
    assert kind.read(store, one) == [one]


def test_a_row_whose_key_was_taken_meanwhile_is_not_added(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, kind: Kind[Any]
) -> None:
    one = kind.fresh()
    other = kind.other(one)
    session.lose(change(kind), Lost(applied=False, then=lambda: kind.add(other_store, other)))
    assert not kind.add(store, one)
    assert kind.read(store, one) == [other]


@pytest.mark.parametrize("applied", [True, False])
def test_a_lease_whose_answer_was_lost_is_found_or_taken_again(
    store: CassandraStore, session: LossySession, kind: Kind[Any], pending: Any, applied: bool
) -> None:
    session.lose(change(kind), Lost(applied))
    assert kind.replace(store, pending, kind.changed(pending, "a"))
    assert session.count(change(kind)) == (1 if applied else 2)
    assert kind.read(store, pending) == [kind.changed(pending, "a")]


def test_a_lease_that_another_worker_took_meanwhile_is_not_ours(
    store: CassandraStore,
    session: LossySession,
    other_store: CassandraStore,
    kind: Kind[Any],
    pending: Any,
) -> None:
    theirs = kind.changed(pending, "b")
    session.lose(change(kind), Lost(applied=False, then=lambda: kind.replace(other_store, pending, theirs)))
    assert not kind.replace(store, pending, kind.changed(pending, "a"))
    assert kind.read(store, pending) == [theirs]


def test_another_worker_s_lease_is_not_ours_even_with_the_same_values(
    store: CassandraStore,
    session: LossySession,
    other_store: CassandraStore,
    kind: Kind[Any],
    pending: Any,
) -> None:
    same = kind.changed(pending, "a")
    session.lose(change(kind), Lost(applied=False, then=lambda: kind.replace(other_store, pending, same)))
    assert not kind.replace(store, pending, same)


def test_a_row_that_was_removed_meanwhile_is_not_leased(
    store: CassandraStore,
    session: LossySession,
    other_store: CassandraStore,
    kind: Kind[Any],
    pending: Any,
) -> None:
    session.lose(change(kind), Lost(applied=False, then=lambda: kind.remove(other_store, pending)))
    assert not kind.replace(store, pending, kind.changed(pending, "a"))
    assert kind.read(store, pending) == []


@pytest.mark.parametrize("applied", [True, False])
def test_a_row_whose_answer_to_removal_was_lost_is_gone(
    store: CassandraStore, session: LossySession, kind: Kind[Any], pending: Any, applied: bool
) -> None:
    session.lose(remove(kind), Lost(applied))
    assert kind.remove(store, pending)
    assert session.count(remove(kind)) == (1 if applied else 2)
    assert kind.read(store, pending) == []


def test_a_row_that_was_leased_meanwhile_is_not_removed(
    store: CassandraStore,
    session: LossySession,
    other_store: CassandraStore,
    kind: Kind[Any],
    pending: Any,
) -> None:
    theirs = kind.changed(pending, "b")
    session.lose(remove(kind), Lost(applied=False, then=lambda: kind.replace(other_store, pending, theirs)))
    assert not kind.remove(store, pending)
    assert kind.read(store, pending) == [theirs]


# Many parts at once.

CHANGE_PART, REMOVE_PART = change(BulkParts()), remove(BulkParts())


@pytest.mark.parametrize("applied", [True, False])
def test_parts_whose_answers_to_batches_were_lost_all_exist_and_then_are_all_gone(
    store: CassandraStore, session: LossySession, applied: bool
) -> None:
    dataset = fresh_dataset()
    parts = [bulk_part(dataset, number) for number in range(2 * MAX_BATCH_ROWS + 10)]
    session.lose(CHANGE_PART, Lost(applied))
    assert store.add_bulk_parts(parts)
    assert session.count(CHANGE_PART) == (3 if applied else 4)
    assert store.bulk_parts(dataset, "job-1") == parts
    session.lose(REMOVE_PART, Lost(applied))
    assert store.remove_bulk_parts(parts)
    assert session.count(REMOVE_PART) == (3 if applied else 4)
    assert store.bulk_parts(dataset, "job-1") == []


def test_parts_are_not_all_added_if_another_plan_added_one_meanwhile(
    store: CassandraStore, session: LossySession, other_store: CassandraStore
) -> None:
    dataset = fresh_dataset()
    parts = [bulk_part(dataset, number) for number in range(10)]
    other = bulk_part(dataset, 4, source="another")
    session.run_before(CHANGE_PART, lambda: other_store.add_bulk_parts([other]))
    assert not store.add_bulk_parts(parts)
    assert store.bulk_parts(dataset, "job-1") == [other]


def test_a_part_that_was_leased_during_the_removal_of_several_is_kept(
    store: CassandraStore, session: LossySession, other_store: CassandraStore
) -> None:
    dataset = fresh_dataset()
    parts = [bulk_part(dataset, number) for number in range(10)]
    store.add_bulk_parts(parts)
    leased = BulkParts().changed(parts[4], "b")
    session.run_before(REMOVE_PART, lambda: other_store.replace_bulk_part(parts[4], leased))
    assert not store.remove_bulk_parts(parts)
    assert store.bulk_parts(dataset, "job-1") == [leased]
