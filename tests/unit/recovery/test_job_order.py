"""The order of jobs, and the estimated time of a replay."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.recovery.cutting import Cutting
from strandline.recovery.estimates import NOTHING, Estimate, Rates, estimate, sample_offsets, total_seconds
from strandline.recovery.job_order import JobOrder, min_time_left
from strandline.store.jobs import Job
from strandline.store.rows import ShardId
from support.manifest_rows import NEVER

pytestmark = pytest.mark.unit

HOUR, GRACE, DAY = 3_600_000, 30_000, 86_400_000
JOB_ORDER = JobOrder(Cutting(HOUR, GRACE), DAY)
FOR_EVER = JobOrder(Cutting(HOUR, GRACE), None)


def job(shard: int, bucket: int, start: int = 0, end: int = 10) -> Job:
    return Job(ShardId("m", shard), bucket, "p", start, end, frozenset({0}), wants_keys=True, life=NEVER)


def test_a_bucket_s_first_record_is_deleted_the_retention_after_the_bucket_s_beginning() -> None:
    assert JOB_ORDER.deleted_at(100) == 100 * HOUR + GRACE + DAY
    assert JOB_ORDER.time_left(100, 100 * HOUR + GRACE) == DAY
    assert JOB_ORDER.time_left(100, 125 * HOUR) == GRACE - HOUR


def test_without_a_retention_nothing_is_ever_deleted() -> None:
    assert FOR_EVER.deleted_at(100) is None
    assert FOR_EVER.time_left(100, 10**15) is None
    assert min_time_left([job(0, 1)], FOR_EVER, 10**15) is None


@pytest.mark.parametrize("job_order", [JOB_ORDER, FOR_EVER])
def test_the_oldest_buckets_of_all_shards_come_first(job_order: JobOrder) -> None:
    jobs = [job(2, 8), job(0, 9), job(1, 8), job(0, 8), job(1, 7)]
    assert job_order.ordered(jobs) == [job(1, 7), job(0, 8), job(1, 8), job(2, 8), job(0, 9)]


def test_the_margin_of_a_recovery_is_the_time_left_of_its_most_urgent_job() -> None:
    assert min_time_left([job(0, 9), job(1, 8)], JOB_ORDER, 8 * HOUR) == GRACE + DAY
    assert min_time_left([], JOB_ORDER, 8 * HOUR) is None


RATES = Rates(bytes_per_second=1_000.0, start_seconds=6.0)


def test_an_estimate_is_by_the_size_of_sampled_records() -> None:
    found = estimate([job(0, 1, 0, 10), job(0, 2, 10, 40)], 250.0, RATES)
    assert found == Estimate(40, 10_000, 10.0)
    assert total_seconds(found, RATES) == 16.0


def test_without_a_sample_only_the_records_are_known() -> None:
    found = estimate([job(0, 1)], None, RATES)
    assert found == Estimate(10, None, None)
    assert total_seconds(found, RATES) is None
    assert found + Estimate(1, 2, 3.0) == Estimate(11, None, None)


def test_nothing_to_replay_takes_no_time() -> None:
    assert estimate([], None, RATES) == NOTHING
    assert total_seconds(NOTHING, RATES) == 0.0
    assert NOTHING + Estimate(1, 2, 3.0) == Estimate(1, 2, 3.0)


def test_samples_are_spread_over_all_ranges() -> None:
    assert sample_offsets([job(0, 1, 0, 40), job(0, 2, 100, 140)]) == [0, 10, 20, 30, 100, 110, 120, 130]
    assert sample_offsets([replace(job(0, 1), start=5, end=8)]) == [5, 6, 7]
    assert sample_offsets([]) == []


@given(lengths=st.lists(st.integers(0, 50), max_size=6), most=st.integers(1, 9))
def test_samples_are_within_the_ranges_and_at_most_max_offsets(lengths: list[int], most: int) -> None:
    jobs = [job(0, number, 100 * number, 100 * number + length) for number, length in enumerate(lengths)]
    offsets = sample_offsets(jobs, most)
    assert len(offsets) == len(set(offsets)) == min(most, sum(lengths))
    assert all(any(job.start <= offset < job.end for job in jobs) for offset in offsets)
