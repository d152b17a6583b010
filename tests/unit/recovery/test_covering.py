"""The offset up to which records are stored, or read by workers, without a gap."""

from dataclasses import replace

import pytest

from strandline.recovery.checkpoints import Progress, designated_group, progress
from strandline.recovery.planning import covered_up_to, jobs_for
from strandline.store.jobs import Job, JobState
from strandline.store.rows import CutRow, ShardId
from support.manifest_rows import NEVER, manifest, row

pytestmark = pytest.mark.unit

SHARD, GROUPS = ShardId("metrics", 0), 2
FIRST = CutRow(99, 0, 0, NEVER, reset=True)
CUTS = [FIRST, CutRow(100, 0, 10, NEVER), CutRow(101, 10, 20, NEVER), CutRow(102, 20, 30, NEVER)]


def done_with(*stored: tuple[int, int], cuts: list[CutRow] | None = None) -> Progress:
    """Progress with the rows of these buckets and groups."""
    designated = designated_group(SHARD, GROUPS)
    rows = [row(bucket, group, index=group == designated) for bucket, group in stored]
    found = progress(manifest(cuts or CUTS, rows), GROUPS, SHARD)
    assert found is not None
    return found


def finished(done: Progress) -> list[Job]:
    """The wanted jobs, as if workers had done them."""
    return [replace(job, state=JobState.DONE, epoch=1) for job in jobs_for(done, SHARD, plan="p", life=9).jobs]


def covered(done: Progress, jobs: list[Job], *, without_result: tuple[int, ...] = ()) -> int:
    return covered_up_to(done, SHARD, jobs, lambda job: job.bucket not in without_result)


def test_without_a_job_it_is_the_checkpoint() -> None:
    assert covered(done_with((100, 0), (100, 1)), []) == 10
    assert covered(done_with((100, 0)), []) == 0


def test_jobs_that_are_done_reach_as_far_as_they_do_without_a_gap() -> None:
    done = done_with((100, 0), (100, 1))
    both = finished(done)
    assert covered(done, both) == 30
    assert covered(done, both[:1]) == 20
    assert covered(done, both[1:]) == 10, "the second job's records do not count without the first job's"


def test_a_bucket_that_is_stored_between_them_is_no_gap() -> None:
    done = done_with((101, 0), (101, 1))
    assert covered(done, finished(done)) == 30


@pytest.mark.parametrize(
    "change",
    [
        {"state": JobState.LEASED},
        {"state": JobState.PENDING},
        {"start": 11},
        {"end": 19},
        {"groups": frozenset({0})},
        {"wants_keys": False},
    ],
    ids=str,
)
def test_a_job_that_does_not_provide_all_missing_rows_covers_nothing(change: dict[str, object]) -> None:
    done = done_with((100, 0), (100, 1))
    first, second = finished(done)
    assert covered(done, [replace(first, **change), second]) == 10  # type: ignore[arg-type]


def test_a_job_without_its_result_covers_nothing() -> None:
    done = done_with((100, 0), (100, 1))
    assert covered(done, finished(done), without_result=(101,)) == 10
    assert covered(done, finished(done), without_result=(102,)) == 20


def test_an_accepted_loss_is_not_a_gap() -> None:
    lost = [FIRST, replace(CUTS[1], lost_to=10), replace(CUTS[2], lost_to=12), CUTS[3]]
    done = done_with(cuts=lost)
    assert covered(done, []) == 12
    assert covered(done, finished(done)) == 30
