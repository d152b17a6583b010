"""Which jobs are read together."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.recovery.waves import MAX_JOBS, next_wave, without_followers
from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId
from support.manifest_rows import NEVER

pytestmark = pytest.mark.unit


def job(shard: int, bucket: int, start: int, end: int, *, failures: int = 0) -> Job:
    return Job(
        ShardId("m", shard),
        bucket,
        "p",
        start,
        end,
        frozenset({0}),
        wants_keys=True,
        life=NEVER,
        failures=failures,
    )


A1, A2, A3 = job(0, 1, 0, 10), job(0, 2, 10, 20), job(0, 3, 20, 30)
B1, B2 = job(1, 1, 500, 510), job(1, 2, 510, 520)
C1 = job(2, 1, 0, 10)


def test_the_most_urgent_jobs_run_together_up_to_a_number_of_offsets() -> None:
    assert next_wave([A1, B1, A2, B2, A3], 1_000) == [A1, B1, A2, B2, A3]
    assert next_wave([A1, B1, A2, B2, A3], 35) == [A1, B1, A2]
    assert next_wave([], 1_000) == []


def test_a_single_job_is_read_whatever_its_size() -> None:
    assert next_wave([A1, A2], 1) == [A1]


def test_one_range_without_a_gap_is_read_of_each_shard() -> None:
    """An empty bucket between two jobs is not a gap; one that is stored or leased to another worker is."""
    assert next_wave([A1, replace(A2, bucket=5)], 1_000) == [A1, replace(A2, bucket=5)]
    assert next_wave([A1, B1, A3, B2], 1_000) == [A1, B1, B2]
    assert next_wave([A1, replace(A2, state=JobState.LEASED), A3], 1_000) == [A1]


@pytest.mark.parametrize("state", [JobState.LEASED, JobState.DONE, JobState.FAILED])
def test_only_pending_jobs_are_taken(state: JobState) -> None:
    assert next_wave([replace(A1, state=state), A2], 1_000) == [A2]


def test_a_job_that_has_failed_is_read_alone() -> None:
    bad = replace(A1, failures=1)
    assert next_wave([bad, B1, A2], 1_000) == [bad]
    assert next_wave([B1, bad, A2, B2], 1_000) == [B1, B2]


def test_a_suspect_is_read_alone() -> None:
    assert next_wave([A1, B1, A2], 1_000, is_suspect=lambda job: job == A1) == [A1]
    assert next_wave([B1, A1, A2, B2], 1_000, is_suspect=lambda job: job == A1) == [B1, B2]


def test_several_suspects_may_be_read_together_but_with_no_other_job() -> None:
    ordered, suspects = [A1, B1, A2, B2, A3], (A1, A2, B1)
    wave = next_wave(ordered, 1_000, is_suspect=lambda job: job in suspects, max_suspects=2)
    assert wave == [A1, B1]
    wave = next_wave(ordered, 1_000, is_suspect=lambda job: job in suspects, max_suspects=9)
    assert wave == [A1, B1, A2]
    assert next_wave([C1, *ordered], 1_000, is_suspect=lambda job: job in suspects, max_suspects=9) == [C1]


def test_an_isolated_shard_shares_a_wave_with_no_other() -> None:
    ordered = [A1, B1, C1, A2, B2]
    assert next_wave(ordered, 1_000, is_isolated=lambda shard: shard == A1.shard) == [A1, A2]
    assert next_wave(ordered, 1_000, is_isolated=lambda shard: shard == B1.shard) == [A1, C1, A2]
    assert next_wave(ordered, 1_000, is_isolated=lambda _: True) == [A1, A2]


def test_a_wave_has_no_more_jobs_than_allowed() -> None:
    assert next_wave([A1, B1, A2, B2], 1_000, 3) == [A1, B1, A2]
    tiny = [job(0, bucket, bucket, bucket + 1) for bucket in range(MAX_JOBS + 1)]
    assert next_wave(tiny, 1_000) == tiny[:-1]


def test_no_job_after_one_that_another_worker_took_is_taken_from_its_shard() -> None:
    assert without_followers([A1, B1, A2, B2, A3], A2) == [A1, B1, B2]


@given(
    jobs=st.lists(
        st.builds(
            lambda shard, bucket, failures: job(shard, bucket, 10 * bucket, 10 * bucket + 10, failures=failures),
            st.integers(0, 2),
            st.integers(0, 6),
            st.sampled_from([0, 0, 0, 1]),
        ),
        unique_by=lambda job: (job.shard, job.bucket),
    ),
    most=st.integers(0, 100),
)
def test_a_wave_begins_with_the_most_urgent_job_and_has_one_range_a_shard(jobs: list[Job], most: int) -> None:
    ordered = sorted(jobs, key=lambda job: (job.bucket, job.shard))
    wave = next_wave(ordered, most)
    assert wave[:1] == ordered[:1]
    assert len(wave) <= 1 or sum(job.end - job.start for job in wave) <= most
    assert len(wave) <= 1 or not any(job.failures for job in wave)
    for shard in {job.shard for job in wave}:
        buckets = [job.bucket for job in wave if job.shard == shard]
        assert buckets == list(range(buckets[0], buckets[0] + len(buckets)))
