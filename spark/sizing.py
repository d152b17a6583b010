"""How a wave is divided, computed from estimates of its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.recovery.replay.sampling import JobSample

# A task keeps its samples in memory, 20 bytes each, and has to start over if it fails.
MAX_TASK_SAMPLES = 4_000_000
# Below these, a task takes longer to start than to run.
MIN_TASK_SAMPLES, MIN_UNIT_SAMPLES = 100_000, 250_000
# Undecodable records have no samples, and are kept as they are.
MAX_TASK_BYTES = 256 << 20
# More than one task per core, so that no core waits long for the last task of another.
TASKS_PER_CORE = 2
# Arrow batches from the JVM to Python: as many records as are expected to have BATCH_BYTES, and never more than
# MAX_BATCH_BYTES, but at least one record.
BATCH_BYTES, MAX_BATCH_BYTES = 8 << 20, 16 << 20
MAX_BATCH_RECORDS = 65_536


@dataclass(frozen=True, slots=True)
class WaveSize:
    """Records per reading task, records per batch, and the maximum number of samples per unit."""

    records_per_task: int
    records_per_batch: int
    unit_samples: int


def wave_size(jobs: Sequence[JobSample], *, cores: int, max_unit_samples: int) -> WaveSize:
    """Tasks that fit into memory, enough for all cores, but none so small that it is not worth starting."""
    records, samples = sum(job.records for job in jobs), sum(job.samples for job in jobs)
    samples_per_record = max(samples / max(records, 1), 1.0)
    wanted = _clamp(samples / (TASKS_PER_CORE * cores), MIN_TASK_SAMPLES, MAX_TASK_SAMPLES)
    # The job with the largest records decides, because a task and a batch have to fit in every job.
    bytes_per_record = max((job.bytes_per_record for job in jobs), default=0.0)
    bytes_per_record = max(bytes_per_record, 1.0)
    return WaveSize(
        records_per_task=max(1, int(min(wanted / samples_per_record, MAX_TASK_BYTES / bytes_per_record))),
        records_per_batch=int(_clamp(BATCH_BYTES / bytes_per_record, 1, MAX_BATCH_RECORDS)),
        unit_samples=int(_clamp(samples / (TASKS_PER_CORE * cores), MIN_UNIT_SAMPLES, max_unit_samples)),
    )


def _clamp(number: float, low: float, high: float) -> float:
    return min(max(number, low), high)
