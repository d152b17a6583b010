"""The replay plan: complete buckets, the jobs for the rows that they lack, and how an owner adopts the jobs of the
previous one.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.recovery.checkpoints import designated_group
from strandline.recovery.log_ends import LogEnds
from strandline.recovery.offset_policy import DataLost, LogMismatch
from strandline.recovery.planning import (
    ShardPlan,
    WantedJobs,
    adopt,
    jobs_for,
    recheck,
)
from strandline.store.jobs import Job, JobState
from strandline.store.rows import CutRow, GroupRow
from support.manifest_rows import NEVER, SHARD, beginning, cut, known, rows_of

pytestmark = pytest.mark.unit

LAST = cut(99, 400, 500)


# Jobs.

DESIGNATED = designated_group(SHARD, 2)
OTHER = 1 - DESIGNATED


def wanted_of(cuts: Iterable[CutRow], rows: Iterable[GroupRow] = ()) -> WantedJobs:
    return jobs_for(known(cuts, rows), SHARD, plan="new", life=NEVER)


def test_each_bucket_that_lacks_rows_has_a_job_for_the_groups_that_lack_them() -> None:
    found = wanted_of([beginning(7, 100), cut(8, 100, 150), cut(9, 150, 180)], rows_of(8, (DESIGNATED,)))
    assert found == WantedJobs(
        (
            Job(SHARD, 8, "new", 100, 150, frozenset({OTHER}), wants_keys=False, life=NEVER),
            Job(SHARD, 9, "new", 150, 180, frozenset({0, 1}), wants_keys=True, life=NEVER),
        ),
        (),
    )
    assert found.records == 80


def test_keys_are_wanted_from_the_index_s_open_bucket_on_and_not_below() -> None:
    cuts = [beginning(7, 100), cut(8, 100, 150), cut(9, 150, 180), cut(10, 180, 190)]
    rows = [*rows_of(8, (DESIGNATED,)), *rows_of(9, (DESIGNATED,))]
    assert [job.wants_keys for job in wanted_of(cuts, rows).jobs] == [False, False, True]


def test_a_stored_bucket_needs_no_job_and_neither_does_one_without_a_record() -> None:
    cuts = [beginning(7, 100), cut(8, 100, 150), cut(9, 150, 150), cut(10, 150, 190)]
    found = wanted_of(cuts, rows_of(8, (0, 1)))
    assert [job.bucket for job in found.jobs] == [10]
    assert found.empty == (9,)


def test_a_job_starts_after_the_accepted_loss() -> None:
    cuts = [beginning(7, 100), replace(cut(8, 100, 150), lost_to=150), replace(cut(9, 150, 180), lost_to=170)]
    found = wanted_of(cuts)
    assert found.empty == (8,)
    assert [(job.bucket, job.start, job.end) for job in found.jobs] == [(9, 170, 180)]


def test_a_superseded_row_has_to_be_written_again() -> None:
    rows = [*rows_of(8, (DESIGNATED,)), *rows_of(8, (OTHER,), superseded=True)]
    assert [job.groups for job in wanted_of([beginning(7, 100), cut(8, 100, 150)], rows).jobs] == [{OTHER}]


# Adoption.

NOW = 1_700_000_000_000
WANTED = Job(SHARD, 8, "new", 100, 150, frozenset({0, 1}), wants_keys=True, life=NEVER)
OLD = replace(WANTED, plan="old")
DONE = replace(OLD, state=JobState.DONE, epoch=3, worker="w")
LEASED = replace(OLD, state=JobState.LEASED, epoch=3, worker="w", leased_until=NOW + 1, failures=2)
FAILED = replace(OLD, state=JobState.FAILED, epoch=5, worker="w", failures=4, reason="bad")


def none_gone(_worker: str) -> bool:
    return False


def all_gone(_worker: str) -> bool:
    return True


def adopted(
    old: Job, wanted: Job = WANTED, *, is_gone: Callable[[str], bool] = none_gone, is_start: bool = True
) -> Job:
    """The job after an adoption."""
    steps = adopt([old], [wanted], is_gone, is_start=is_start)
    assert not steps.add
    assert not steps.remove
    if steps.keep:
        assert steps.changes_nothing
        return steps.keep[0]
    ((before, after),) = steps.replace
    assert before == old
    return after


def test_missing_jobs_are_added_and_unwanted_ones_are_removed() -> None:
    steps = adopt([replace(OLD, bucket=7), replace(LEASED, bucket=6)], [WANTED], none_gone)
    assert steps.add == (WANTED,)
    assert {job.bucket for job in steps.remove} == {6, 7}
    assert not steps.changes_nothing


@pytest.mark.parametrize("job", [OLD, replace(OLD, epoch=7), DONE, LEASED])
def test_a_job_that_provides_what_is_wanted_is_kept_unchanged(job: Job) -> None:
    assert adopted(job) == job


def test_a_job_that_provides_more_than_is_wanted_is_kept() -> None:
    assert adopted(DONE, replace(WANTED, groups=frozenset({1}), wants_keys=False)) == DONE


@pytest.mark.parametrize("job", [OLD, DONE, LEASED, FAILED])
@pytest.mark.parametrize(
    "wanted",
    [
        replace(WANTED, start=101),
        replace(WANTED, end=151),
        replace(WANTED, groups=frozenset({0, 1, 2})),
    ],
)
def test_a_job_that_provides_less_is_replaced_and_its_epoch_does_not_fall(job: Job, wanted: Job) -> None:
    assert adopted(job, wanted) == replace(wanted, epoch=job.epoch)


def test_a_job_without_keys_is_replaced_if_keys_are_wanted() -> None:
    old = replace(DONE, wants_keys=False)
    assert adopted(old) == replace(WANTED, epoch=old.epoch)


def test_a_failed_job_is_retried_with_failures_counted_from_zero() -> None:
    assert adopted(FAILED) == replace(OLD, epoch=5)
    assert adopted(replace(OLD, epoch=2, failures=3, reason="bad")) == replace(OLD, epoch=2)


@pytest.mark.parametrize("left", [1, 0, -(10**9)])
def test_a_lease_is_honoured_whatever_the_time_on_it(left: int) -> None:
    """The time is by the worker's clock. Workers that watch the job take it back if it is not renewed."""
    job = replace(LEASED, leased_until=NOW + left)
    assert adopted(job) == job


def test_the_lease_of_a_dead_process_is_reclaimed_at_once() -> None:
    assert adopted(LEASED, is_gone=all_gone) == replace(OLD, epoch=3)


@pytest.mark.parametrize("job", [FAILED, LEASED, replace(LEASED, leased_until=0), replace(OLD, failures=2), DONE])
def test_an_owner_that_adds_to_its_own_plan_keeps_leases_and_failures(job: Job) -> None:
    assert adopted(job, is_gone=all_gone, is_start=False) == job
    assert adopted(job, replace(WANTED, end=151), is_start=False) == replace(WANTED, end=151, epoch=job.epoch)


jobs = st.builds(
    Job,
    shard=st.just(SHARD),
    bucket=st.integers(0, 5),
    plan=st.sampled_from(["a", "b"]),
    start=st.integers(0, 2),
    end=st.integers(3, 4),
    groups=st.frozensets(st.integers(0, 2), min_size=1),
    wants_keys=st.booleans(),
    life=st.just(NEVER),
    state=st.sampled_from(JobState),
    epoch=st.integers(0, 4),
    worker=st.sampled_from(["w", "gone"]),
    leased_until=st.integers(NOW - 1, NOW + 1),
    failures=st.integers(0, 4),
)
of_one_shard = st.lists(jobs, unique_by=lambda job: job.bucket, max_size=6)


@given(existing=of_one_shard, wanted=of_one_shard)
def test_after_an_adoption_each_wanted_bucket_has_one_satisfying_job_and_another_adoption_changes_nothing(
    existing: list[Job], wanted: list[Job]
) -> None:
    wanted = [
        replace(job, plan="new", state=JobState.PENDING, epoch=0, worker="", leased_until=0, failures=0)
        for job in wanted
    ]
    steps = adopt(existing, wanted, lambda worker: worker == "gone")
    after = [*steps.keep, *steps.add, *(new for _, new in steps.replace)]
    assert sorted(job.bucket for job in after) == sorted(job.bucket for job in wanted)
    epochs = {job.bucket: job.epoch for job in existing}
    wanted_by_bucket = {job.bucket: job for job in wanted}
    for job in after:
        assert job.epoch >= epochs.get(job.bucket, 0)
        assert job.state is not JobState.FAILED
        assert (job.start, job.end) == (wanted_by_bucket[job.bucket].start, wanted_by_bucket[job.bucket].end)
        assert job.groups >= wanted_by_bucket[job.bucket].groups
    again = adopt(after, wanted, lambda worker: worker == "gone")
    assert again.changes_nothing


# A plan is checked again before it runs.

PLAN = ShardPlan(SHARD, "topic-1", 180, WantedJobs((WANTED, replace(WANTED, bucket=9, start=150, end=180)), ()))


@pytest.mark.parametrize(("start", "end"), [(0, 180), (100, 180), (100, 500)])
def test_a_plan_whose_records_are_still_in_the_log_may_run(start: int, end: int) -> None:
    recheck(PLAN, LogEnds(start, end, end + 5), "topic-1")
    recheck(replace(PLAN, wanted=WantedJobs((), ())), LogEnds(180, 180, 180), "topic-1")


def test_a_plan_whose_first_records_are_deleted_may_not_run() -> None:
    with pytest.raises(DataLost, match=r"from offset 100 up to 101") as raised:
        recheck(PLAN, LogEnds(101, 180, 180), "topic-1")
    assert (raised.value.first, raised.value.end) == (100, 101)


def test_a_plan_for_a_recreated_topic_may_not_run() -> None:
    with pytest.raises(LogMismatch, match="its id is topic-2, and it was topic-1"):
        recheck(PLAN, LogEnds(0, 500, 500), "topic-2")


def test_a_plan_for_a_log_that_ends_sooner_now_may_not_run() -> None:
    with pytest.raises(LogMismatch, match="ends at offset 179, before 180"):
        recheck(PLAN, LogEnds(0, 179, 500), "topic-1")
