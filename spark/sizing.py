"""How a wave is divided: pure reckoning with what a few of its records hold."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.recovery.replay.sampling import JobSample

# A task keeps its samples in memory, 20 bytes each, and everything is done again if it fails.
MOST_TASK_SAMPLES = 4_000_000
# Below these a task takes longer to start than to run.
LEAST_TASK_SAMPLES, LEAST_UNIT_SAMPLES = 100_000, 250_000
# Records that can't be decoded have no samples, and are kept as they are.
MOST_TASK_BYTES = 256 << 20
# So that no core waits long for the last task of another.
TASKS_A_CORE = 2
# Records that the JVM hands to Python at a time: as many as are expected to have so many bytes, and in no case more
# bytes than that, but one record at least.
BATCH_BYTES, MAX_BATCH_BYTES = 8 << 20, 16 << 20
MOST_BATCH_RECORDS = 65_536


@dataclass(frozen=True, slots=True)
class WaveSize:
    """Records of a task that reads, records that it gets at a time, and samples of a unit at the most."""

    records_a_task: int
    records_a_batch: int
    unit_samples: int


def wave_size(jobs: Sequence[JobSample], *, cores: int, most_unit_samples: int) -> WaveSize:
    """Tasks that are small enough for memory, enough of them for all cores, and none that is not worth it."""
    records, samples = sum(job.records for job in jobs), sum(job.samples for job in jobs)
    samples_a_record = max(samples / max(records, 1), 1.0)
    wanted = _between(samples / (TASKS_A_CORE * cores), LEAST_TASK_SAMPLES, MOST_TASK_SAMPLES)
    # The largest records decide: a task and a batch have to fit wherever they lie.
    bytes_a_record = max((job.bytes_a_record for job in jobs), default=0.0)
    bytes_a_record = max(bytes_a_record, 1.0)
    return WaveSize(
        records_a_task=max(1, int(min(wanted / samples_a_record, MOST_TASK_BYTES / bytes_a_record))),
        records_a_batch=int(_between(BATCH_BYTES / bytes_a_record, 1, MOST_BATCH_RECORDS)),
        unit_samples=int(_between(samples / (TASKS_A_CORE * cores), LEAST_UNIT_SAMPLES, most_unit_samples)),
    )


def _between(number: float, least: float, most: float) -> float:
    return min(max(number, least), most)
