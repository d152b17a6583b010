"""How a wave is divided."""

import pytest

from strandline.recovery.replay.sampling import JobSample
from strandline.spark.sizing import (
    BATCH_BYTES,
    MAX_BATCH_RECORDS,
    MAX_TASK_BYTES,
    MAX_TASK_SAMPLES,
    MIN_TASK_SAMPLES,
    MIN_UNIT_SAMPLES,
    WaveSize,
    wave_size,
)
from support.replays import leased_job

pytestmark = pytest.mark.unit

MOST_UNIT = 8_000_000


def job(records: int, samples_per_record: float, bytes_per_record: float = 40_000.0) -> JobSample:
    return JobSample(leased_job(0, records), samples_per_record, bytes_per_record, None)


def size(*jobs: JobSample, cores: int = 2) -> WaveSize:
    return wave_size(jobs, cores=cores, max_unit_samples=MOST_UNIT)


def test_a_large_wave_has_tasks_and_units_that_fit_into_memory() -> None:
    found = size(job(1_000_000, 2_000))
    assert found.records_per_task == MAX_TASK_SAMPLES // 2_000
    assert found.unit_samples == MOST_UNIT


def test_a_medium_wave_has_enough_tasks_for_all_cores() -> None:
    found = size(job(2_500, 2_000))
    assert found.records_per_task == 2_500 // 4
    assert found.unit_samples == 5_000_000 // 4


def test_a_small_wave_has_no_tasks_that_are_not_worth_it() -> None:
    found = size(job(100, 10, 400.0))
    assert found.records_per_task == MIN_TASK_SAMPLES // 10
    assert found.unit_samples == MIN_UNIT_SAMPLES


def test_large_records_without_samples_make_small_tasks() -> None:
    """As in a topic full of undecodable records: a task keeps them in memory."""
    found = size(job(1_000_000, 0.0, 100_000.0))
    assert found.records_per_task == MAX_TASK_BYTES // 100_000
    assert size(job(10, 0.0, 2.0 * MAX_TASK_BYTES)).records_per_task == 1


def test_records_of_many_samples_are_read_one_a_task() -> None:
    assert size(job(10, 50_000_000)).records_per_task == 1


def test_a_wave_without_a_sample_is_read_in_one_task() -> None:
    found = size(job(50_000, 0.0, 0.0))
    assert found.records_per_task >= 50_000
    assert found.records_per_batch == MAX_BATCH_RECORDS


def test_the_largest_records_determine_the_size_of_a_batch() -> None:
    assert size(job(10, 1, 100.0), job(10, 1, BATCH_BYTES / 8)).records_per_batch == 8
    assert size(job(10, 1, 100.0 * BATCH_BYTES)).records_per_batch == 1
