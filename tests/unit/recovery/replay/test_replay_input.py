"""Jobs as waves, and their units."""

import pickle
from dataclasses import replace

import pytest

from strandline.recovery.plan_id import new_plan_id
from strandline.recovery.replay.replay_input import ReplayInput, SeriesBound, data_life, waves_of
from strandline.store.rows import Lifetime
from support import replays
from support.replays import HOUR, leased_job

pytestmark = pytest.mark.unit

BOUND = SeriesBound(1, 2, 3, 4)


def test_jobs_without_a_gap_are_one_wave_of_all_shards() -> None:
    jobs = [leased_job(5, 9, bucket=2), leased_job(0, 5, bucket=1), leased_job(3, 4, shard=1)]
    assert waves_of(jobs) == [[jobs[1], jobs[0], jobs[2]]]


def test_jobs_after_a_gap_are_another_wave() -> None:
    jobs = [leased_job(0, 5, bucket=1), leased_job(6, 9, bucket=2), leased_job(3, 4, shard=1)]
    assert waves_of(jobs) == [[jobs[0], jobs[2]], [jobs[1]]]


def test_empty_jobs_keep_their_position() -> None:
    jobs = [leased_job(5, 5, bucket=2), leased_job(0, 5, bucket=1), leased_job(5, 5, bucket=3)]
    assert [sorted(job.bucket for job in wave) for wave in waves_of(jobs)] == [[1, 2, 3]]
    assert waves_of([]) == []


def test_units_are_numbered_throughout_the_wave() -> None:
    jobs = [leased_job(0, 5, bucket=1), leased_job(5, 9, bucket=2), leased_job(9, 12, bucket=3)]
    given = ReplayInput.of(jobs, replays.settings(), now=0, bounds={jobs[0]: [BOUND], jobs[2]: [BOUND, BOUND]})
    assert [given.job_of_unit(unit).bucket for unit in range(given.units)] == [1, 1, 2, 3, 3, 3]


def test_results_live_longer_than_their_jobs() -> None:
    job = leased_job(0, 5, bucket=6, life=50 * HOUR)
    input_job = ReplayInput.of([job], replays.settings(), now=7 * HOUR, bounds={}).jobs[0]
    assert input_job.result_life == Lifetime(51 * HOUR, expires=58 * HOUR)
    assert input_job.attempt == "plan.1"


@pytest.mark.parametrize("now", [0, 700 * HOUR, 90_000 * HOUR], ids=["1970", "behind", "ahead"])
def test_segments_live_from_the_plan_on_whatever_a_worker_s_clock_shows(now: int) -> None:
    """Scenario 38."""
    job = replace(leased_job(0, 5, bucket=1000), plan=new_plan_id(1100 * HOUR))
    input_job = ReplayInput.of([job], replays.settings(), now=now, bounds={}).jobs[0]
    assert input_job.data_life == Lifetime(5 * HOUR, expires=1105 * HOUR)


def test_segments_of_a_plan_made_with_a_slow_clock_live_from_the_end_of_their_bucket() -> None:
    """Scenario 38. Their lifetime reaches that date whenever they are written, which is after the plan."""
    job = replace(leased_job(0, 5, bucket=1000), plan=new_plan_id(700 * HOUR))
    assert data_life(job, replays.settings()) == Lifetime(306 * HOUR, expires=1006 * HOUR)


def test_segments_of_a_plan_of_the_previous_version_live_from_their_bucket_s_end_on() -> None:
    job = replace(leased_job(0, 5, bucket=1000), plan=new_plan_id(None))
    assert data_life(job, replays.settings()) == Lifetime(6 * HOUR, expires=1006 * HOUR)


def test_a_wave_can_be_pickled() -> None:
    job = leased_job(0, 5)
    given = ReplayInput.of([job], replays.settings(), now=0, bounds={job: [BOUND]})
    assert pickle.loads(pickle.dumps(given)) == given  # noqa: S301
