"""Bulk jobs and their parts change by compare-and-set only: of two concurrent changes, one succeeds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, repeat
from typing import Any

import pytest

from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart, Wanted
from strandline.store.compared import MAX_TEXT_BYTES
from strandline.store.jobs import JobState
from strandline.store.protocol import Store, StoreRefused
from support.compared_kinds import BulkJobs, BulkParts, Kind, bulk_job, bulk_part, fresh_dataset
from support.store_contract import LASTING, race

pytestmark = pytest.mark.contract


@pytest.fixture(params=[BulkJobs, BulkParts], ids=lambda kind: kind.table)
def kind(request: pytest.FixtureRequest) -> Kind[Any]:
    return request.param()


@pytest.fixture
def dataset() -> str:
    """A dataset that no test has used."""
    return fresh_dataset()


# Jobs and parts.


def test_a_store_without_rows_returns_none(store: Store, kind: Kind[Any]) -> None:
    row = kind.fresh()
    assert list(kind.read(store, row)) == []
    assert kind.read_one(store, row) is None
    assert not kind.replace(store, row, kind.changed(row, "a"))
    assert not kind.remove(store, row)
    assert list(kind.read(store, row)) == []


def test_rows_are_read_in_order(store: Store, other_store: Store, kind: Kind[Any]) -> None:
    first = kind.fresh()
    rows = [kind.beside(first, number) for number in (100, 9, 472_222, 11)]
    for row in rows:
        assert kind.add(store, row)
    ordered = [rows[index] for index in (1, 3, 0, 2)]
    assert list(kind.read(store, first)) == ordered
    assert list(kind.read(other_store, first)) == ordered
    assert kind.read_one(other_store, rows[3]) == rows[3]


def test_a_row_is_not_overwritten(store: Store, kind: Kind[Any]) -> None:
    first = kind.fresh()
    assert kind.add(store, first)
    assert kind.add(store, first), "an identical row is already stored"
    assert not kind.add(store, kind.other(first))
    assert list(kind.read(store, first)) == [first]


def test_a_row_that_has_advanced_is_not_reset(store: Store, kind: Kind[Any]) -> None:
    first = kind.fresh()
    kind.add(store, first)
    assert kind.replace(store, first, kind.changed(first, "a"))
    assert not kind.add(store, first)
    assert kind.read_one(store, first) == kind.changed(first, "a")


def test_a_change_is_applied_once(store: Store, other_store: Store, kind: Kind[Any]) -> None:
    first = kind.fresh()
    kind.add(store, first)
    changed = kind.changed(first, "a")
    assert kind.replace(store, first, changed)
    assert not kind.replace(other_store, first, kind.changed(first, "b")), "it no longer equals `before`"
    assert not kind.remove(other_store, first)
    assert kind.read_one(store, first) == changed
    assert kind.replace(other_store, changed, kind.changed(changed, "b"))


def test_a_removed_row_is_deleted_and_can_be_added_again(store: Store, kind: Kind[Any]) -> None:
    first = kind.fresh()
    neighbour = kind.beside(first, 6)
    kind.add(store, first)
    kind.add(store, neighbour)
    assert kind.remove(store, first)
    assert not kind.remove(store, first)
    assert list(kind.read(store, first)) == [neighbour]
    assert kind.add(store, kind.other(first))
    assert list(kind.read(store, first)) == [kind.other(first), neighbour]


def test_a_row_is_replaced_only_by_one_with_the_same_key(store: Store, kind: Kind[Any]) -> None:
    first = kind.fresh()
    kind.add(store, first)
    with pytest.raises(ValueError, match="can't be replaced by"):
        kind.replace(store, first, kind.beside(kind.changed(first, "a"), 6))


def test_exactly_one_of_concurrent_changes_succeeds(store: Store, other_store: Store, kind: Kind[Any]) -> None:
    first = kind.fresh()
    for number in range(5):
        row = kind.beside(first, number)
        kind.add(store, row)
        changes = [kind.changed(row, f"worker-{worker}") for worker in range(8)]
        won = race(kind.replace, cycle([store, other_store]), repeat(row), changes)
        assert won.count(True) == 1
        assert kind.read_one(store, row) == changes[won.index(True)]


def test_exactly_one_of_concurrently_added_rows_is_stored(store: Store, other_store: Store, kind: Kind[Any]) -> None:
    first = kind.fresh()
    for number in range(5):
        rows = [kind.other(kind.beside(first, number), plan) for plan in range(6)]
        added = race(kind.add, cycle([store, other_store]), rows)
        assert added.count(True) == 1
        assert kind.read_one(store, rows[0]) == rows[added.index(True)]


def test_a_row_that_is_concurrently_changed_and_removed_is_one_or_the_other(
    store: Store, other_store: Store, kind: Kind[Any]
) -> None:
    first = kind.fresh()

    def change(here: Store, row: Any, after: Any) -> bool:
        return kind.remove(here, row) if after is None else kind.replace(here, row, after)

    for number in range(5):
        row = kind.beside(first, number)
        changed = kind.changed(row, "a")
        kind.add(store, row)
        was_changed, was_removed = race(change, [store, other_store], repeat(row), [changed, None])
        assert was_changed != was_removed
        assert kind.read_one(store, row) == (changed if was_changed else None)


# Parts.


def some_parts(dataset: str, numbers: Sequence[int]) -> list[BulkPart]:
    return [bulk_part(dataset, number) for number in numbers]


def test_every_field_of_a_part_is_kept(store: Store, dataset: str) -> None:
    full = BulkPart(
        dataset,
        "job-1",
        2**31 - 1,
        source='{"path": "ü/«…»", "from": 0}',
        life=LASTING + 86_400_000,
        state=JobState.FAILED,
        epoch=2**40,
        worker="worker-ü",
        leased_until=1_700_000_000_000,
        renewals=12_345,
        failures=4,
        reason="line 12 can't be decoded",
        window=3,
        counts='{"bad": 7}',
        outcome='{"records": 9}',
    )
    empty = BulkPart(dataset, "job-1", 0, source="", life=LASTING)
    assert store.add_bulk_parts([full, empty])
    assert list(store.bulk_parts(dataset, "job-1")) == [empty, full]


def test_thousands_of_parts_are_put_and_read_and_removed_together(
    store: Store, other_store: Store, dataset: str
) -> None:
    parts = [replace(part, source="x" * (part.part % 700)) for part in some_parts(dataset, range(3_000))]
    assert store.add_bulk_parts(parts[::-1])
    assert list(other_store.bulk_parts(dataset, "job-1")) == parts
    assert store.add_bulk_parts(parts), "they are already stored"
    assert other_store.remove_bulk_parts(parts)
    assert list(store.bulk_parts(dataset, "job-1")) == []
    assert not store.remove_bulk_parts(parts)


def test_missing_parts_are_added_to_existing_ones(store: Store, dataset: str) -> None:
    parts = some_parts(dataset, range(10))
    assert store.add_bulk_parts(parts[3:5])
    assert store.add_bulk_parts(parts)
    assert list(store.bulk_parts(dataset, "job-1")) == parts


def test_adding_parts_fails_if_an_existing_one_differs(store: Store, dataset: str) -> None:
    parts = some_parts(dataset, range(10))
    another = replace(parts[4], source="another")
    assert store.add_bulk_parts([another])
    assert not store.add_bulk_parts(parts)
    assert store.bulk_part(dataset, "job-1", 4) == another


def test_only_unchanged_parts_are_removed(store: Store, dataset: str) -> None:
    parts = some_parts(dataset, range(10))
    store.add_bulk_parts(parts)
    leased = BulkParts().changed(parts[4], "a")
    store.replace_bulk_part(parts[4], leased)
    assert not store.remove_bulk_parts(parts)
    assert list(store.bulk_parts(dataset, "job-1")) == [leased]


def test_adding_or_removing_no_parts_succeeds(store: Store) -> None:
    assert store.add_bulk_parts([])
    assert store.remove_bulk_parts([])


def test_parts_of_two_jobs_or_repeated_parts_are_refused(store: Store, dataset: str) -> None:
    part = bulk_part(dataset, 1)
    for call in (store.add_bulk_parts, store.remove_bulk_parts):
        with pytest.raises(ValueError, match="parts of another job"):
            call([part, replace(part, job="job-2")])
        with pytest.raises(ValueError, match="one of them is repeated"):
            call([part, replace(part, source="another")])
    assert list(store.bulk_parts(dataset, "job-1")) == []


def test_parts_of_other_jobs_are_separate(store: Store, dataset: str) -> None:
    part = bulk_part(dataset, 1)
    others = [replace(part, job="job-2"), replace(part, dataset=f"{dataset}-2")]
    for stored_part in (part, *others):
        assert store.add_bulk_parts([stored_part])
    assert store.remove_bulk_parts([part])
    assert list(store.bulk_parts(dataset, "job-1")) == []
    assert [list(store.bulk_parts(stored_part.dataset, stored_part.job)) for stored_part in others] == [
        [stored_part] for stored_part in others
    ]


CHANGES_OF_PARTS: dict[str, Callable[[BulkPart], BulkPart]] = {
    "state": lambda part: replace(part, state=JobState.DONE),
    "epoch": lambda part: replace(part, epoch=part.epoch + 1),
    "worker": lambda part: replace(part, worker="b"),
    "lease": lambda part: replace(part, leased_until=part.leased_until + 1),
    "renewals": lambda part: replace(part, renewals=part.renewals + 1),
}


@pytest.mark.parametrize("change", CHANGES_OF_PARTS.values(), ids=CHANGES_OF_PARTS.keys())
def test_a_part_that_changed_is_neither_replaced_nor_removed(
    store: Store, dataset: str, change: Callable[[BulkPart], BulkPart]
) -> None:
    outdated = BulkParts().changed(bulk_part(dataset, 1), "a")
    stored = change(outdated)
    assert store.add_bulk_parts([stored])
    assert not store.replace_bulk_part(outdated, replace(outdated, reason="mine"))
    assert not store.remove_bulk_parts([outdated])
    assert store.bulk_part(dataset, "job-1", 1) == stored


def test_columns_of_a_part_that_are_not_compared_may_differ(store: Store, dataset: str) -> None:
    stored = replace(bulk_part(dataset, 1), counts='{"bad": 1}', window=3, failures=2)
    store.add_bulk_parts([stored])
    seen = replace(stored, counts="", window=0, failures=0, source="")
    after = replace(stored, renewals=1, counts='{"bad": 2}', outcome="{}")
    assert store.replace_bulk_part(seen, after)
    assert store.bulk_part(dataset, "job-1", 1) == after


# Jobs.


def test_every_field_of_a_job_is_kept(store: Store, dataset: str) -> None:
    full = BulkJob(
        dataset,
        "b",
        kind="import",
        spec='{"uri": "ü/«…»"}',
        plan_hash="a hash",
        parts=10_000,
        life=LASTING + 86_400_000,
        created_at=1_700_000_000_000,
        state=BulkJobState.BROKEN,
        version=2**40,
        window=3,
        wanted=Wanted.CANCELLED,
        reason="too many bad records",
        changed_at=1_700_000_000_001,
        due_at=1_700_000_000_002,
        idle_since=1_700_000_000_003,
        expires_after=432_000_000,
        report='{"records": 9}',
    )
    empty = BulkJob(dataset, "a", "send", "", "", 0, LASTING, created_at=0)
    for job in (full, empty):
        assert store.add_bulk_job(job)
    assert list(store.bulk_jobs(dataset)) == [empty, full]
    assert store.bulk_job(dataset, "b") == full


def test_jobs_are_read_in_pages(store: Store, dataset: str) -> None:
    jobs = [replace(bulk_job(dataset, number), spec="x" * 1_000) for number in range(120)]
    for job in jobs:
        assert store.add_bulk_job(job)
    assert list(store.bulk_jobs(dataset)) == jobs


CHANGES_OF_JOBS: dict[str, Callable[[BulkJob], BulkJob]] = {
    "plan": lambda job: replace(job, plan_hash="another"),
    "state": lambda job: replace(job, state=BulkJobState.PAUSED),
    "version": lambda job: replace(job, version=job.version + 1),
    "window": lambda job: replace(job, window=job.window + 1),
    "wanted": lambda job: replace(job, wanted=Wanted.PAUSED),
}


@pytest.mark.parametrize("change", CHANGES_OF_JOBS.values(), ids=CHANGES_OF_JOBS.keys())
def test_a_job_that_changed_is_neither_replaced_nor_removed(
    store: Store, dataset: str, change: Callable[[BulkJob], BulkJob]
) -> None:
    outdated = bulk_job(dataset, 1)
    stored = change(outdated)
    assert store.add_bulk_job(stored)
    assert not store.replace_bulk_job(outdated, replace(outdated, version=7, reason="mine"))
    assert not store.remove_bulk_job(outdated)
    assert list(store.bulk_jobs(dataset)) == [stored]


def test_a_change_of_a_job_raises_its_version(store: Store, dataset: str) -> None:
    """Otherwise a second change from the same state would not be detected."""
    job = bulk_job(dataset, 1)
    store.add_bulk_job(job)
    with pytest.raises(ValueError, match="must rise above 0, but the change has version 0"):
        store.replace_bulk_job(job, replace(job, reason="mine"))


# Texts.


def test_a_text_of_64_kb_is_kept_and_a_longer_one_refused(store: Store, dataset: str) -> None:
    part, job = bulk_part(dataset, 1), bulk_job(dataset, 1)
    longest, too_long = "ü" * (MAX_TEXT_BYTES // 2), "ü" * (MAX_TEXT_BYTES // 2) + "x"
    refused = pytest.raises(
        StoreRefused, match=r"(source|counts|spec|report) of .* has 65537 bytes; the limit is 65536"
    )
    with refused:
        store.add_bulk_parts([part, replace(part, part=2, source=too_long)])
    with refused:
        store.add_bulk_job(replace(job, spec=too_long))
    assert list(store.bulk_parts(dataset, "job-1")) == list(store.bulk_jobs(dataset)) == []
    part, job = replace(part, source=longest), replace(job, spec=longest)
    assert store.add_bulk_parts([part])
    assert store.add_bulk_job(job)
    with refused:
        store.replace_bulk_part(part, replace(part, renewals=1, counts=too_long))
    with refused:
        store.replace_bulk_job(job, replace(job, version=1, report=too_long))
    assert list(store.bulk_parts(dataset, "job-1")) == [part]
    assert list(store.bulk_jobs(dataset)) == [job]


def test_many_parts_with_the_longest_texts_are_put_together(store: Store, dataset: str) -> None:
    """Far more than fits into one batch of Cassandra."""
    parts = [replace(part, source="x" * MAX_TEXT_BYTES) for part in some_parts(dataset, range(400))]
    assert store.add_bulk_parts(parts)
    assert list(store.bulk_parts(dataset, "job-1")) == parts
