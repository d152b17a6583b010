"""Which jobs run together: a pure choice among the pending ones."""

from collections.abc import Callable, Iterable, Sequence

from strandline.recovery.leasing import is_leasable
from strandline.store.jobs import Job
from strandline.store.rows import ShardId

MAX_JOBS = 64
"""At most this many jobs run together, however small they are: a few records of each are sampled first, and a failure
makes all of them suspects.
"""


def never_suspect(_job: Job) -> bool:
    """For callers without suspects."""
    return False


def has_failed(job: Job) -> bool:
    """For callers that run every job alone that has failed."""
    return bool(job.failures)


def never_isolated(_shard: ShardId) -> bool:
    """For callers that read all shards together."""
    return False


def next_wave(
    ordered: Iterable[Job],
    max_records: int,
    max_jobs: int = MAX_JOBS,
    *,
    runs_alone: Callable[[Job], bool] = has_failed,
    is_suspect: Callable[[Job], bool] = never_suspect,
    max_suspects: int = 1,
    is_isolated: Callable[[ShardId], bool] = never_isolated,
) -> list[Job]:
    """The next jobs to run together, from jobs in order of urgency.

    The jobs of a shard form one contiguous range of offsets, because a partition is read from one offset to another. A
    wave has at most `max_records` offsets and `max_jobs` jobs, but at least one job. A job that has failed runs alone.
    Suspects run `max_suspects` at a time and without other jobs, to find the one that fails. An isolated shard shares a
    wave with no other.
    """
    wave: list[Job] = []
    last: dict[ShardId, Job] = {}
    records_left = max_records
    skipped: set[ShardId] = set()
    for job in ordered:
        if not is_leasable(job) or job.shard in skipped:
            continue
        is_single = runs_alone(job)
        if not wave and is_single:
            return [job]
        if not wave and is_suspect(job):
            max_jobs = min(max_jobs, max_suspects)
        before = last.get(job.shard)
        has_gap = before is not None and before.end != job.start
        crosses_isolation = (
            bool(wave) and job.shard != wave[0].shard and (is_isolated(job.shard) or is_isolated(wave[0].shard))
        )
        differs_in_suspicion = bool(wave) and is_suspect(job) != is_suspect(wave[0])
        if is_single or has_gap or crosses_isolation or differs_in_suspicion:
            skipped.add(job.shard)
            continue
        if wave and (job.end - job.start > records_left or len(wave) >= max_jobs):
            break
        wave.append(job)
        last[job.shard] = job
        records_left -= job.end - job.start
    return wave


def without_followers(wave: Sequence[Job], lost: Job) -> list[Job]:
    """A wave without a job that another worker has taken and the later jobs of its shard."""
    return [job for job in wave if job.shard != lost.shard or job.bucket < lost.bucket]
