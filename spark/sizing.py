"""How a wave is divided: pure reckoning with what a few of its records hold."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.recovery.replay.sampling import JobSample

# A task keeps its samples in memory, 20 bytes each, and everything is done again if it fails.
MAX_TASK_SAMPLES = 4_000_000
# Below these a task takes longer to start than to run.
MIN_TASK_SAMPLES, MIN_UNIT_SAMPLES = 100_000, 250_000
# Records that can't be decoded have no samples, and are kept as they are.
MAX_TASK_BYTES = 256 << 20
# So that no core waits long for the last task of another.
TASKS_PER_CORE = 2
# Records that the JVM hands to Python at a time: as many as are expected to have so many bytes, and in no case more
# bytes than that, but one record at least.
BATCH_BYTES, MAX_BATCH_BYTES = 8 << 20, 16 << 20
MAX_BATCH_RECORDS = 65_536


@dataclass(frozen=True, slots=True)
class WaveSize:
    """Records of a task that reads, records that it gets at a time, and samples of a unit at the most."""

    records_per_task: int
    records_per_batch: int
    unit_samples: int


def wave_size(jobs: Sequence[JobSample], *, cores: int, max_unit_samples: int) -> WaveSize:
    """Tasks that are small enough for memory, enough of them for all cores, and none that is not worth it."""
    records, samples = sum(job.records for job in jobs), sum(job.samples for job in jobs)
    samples_per_record = max(samples / max(records, 1), 1.0)
    wanted = _between(samples / (TASKS_PER_CORE * cores), MIN_TASK_SAMPLES, MAX_TASK_SAMPLES)
    # The largest records decide: a task and a batch have to fit wherever they lie.
    bytes_per_record = max((job.bytes_per_record for job in jobs), default=0.0)
    bytes_per_record = max(bytes_per_record, 1.0)
    return WaveSize(
        records_per_task=max(1, int(min(wanted / samples_per_record, MAX_TASK_BYTES / bytes_per_record))),
        records_per_batch=int(_between(BATCH_BYTES / bytes_per_record, 1, MAX_BATCH_RECORDS)),
        unit_samples=int(_between(samples / (TASKS_PER_CORE * cores), MIN_UNIT_SAMPLES, max_unit_samples)),
    )


def _between(number: float, least: float, most: float) -> float:
    return min(max(number, least), most)
