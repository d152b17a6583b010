"""Which jobs are read together: a pure choice among those that nobody has."""

from collections.abc import Callable, Iterable, Sequence

from strandline.recovery.leasing import is_leasable
from strandline.store.jobs import Job
from strandline.store.rows import ShardId

MAX_JOBS = 64
"""So many jobs are read together at the most, however small they are: a few records of each are looked at before, and
all of them are in doubt if one fails."""


def never_suspect(_job: Job) -> bool:
    """For those who suspect no job."""
    return False


def has_failed(job: Job) -> bool:
    """For those who read every job alone that has failed."""
    return bool(job.failures)


def never_isolated(_shard: ShardId) -> bool:
    """For those who read all shards together."""
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
    """The next jobs to be read in one go, from jobs in order of their urgency.

    Of each shard one range of offsets without a gap, since a partition is read from one offset to another; no more than
    `max_records` offsets and `max_jobs` jobs, but one job at least. A job that has failed is read alone, and those
    that are suspected of having made a wave fail are read `max_suspects` at a time, without others: so it is found
    out which one it was. A shard that is to be read apart shares a wave with no other.
    """
    wave: list[Job] = []
    last: dict[ShardId, Job] = {}
    left = max_records
    passed: set[ShardId] = set()
    for job in ordered:
        if not is_leasable(job) or job.shard in passed:
            continue
        runs_alone_now = runs_alone(job)
        if not wave and runs_alone_now:
            return [job]
        if not wave and is_suspect(job):
            max_jobs = min(max_jobs, max_suspects)
        before = last.get(job.shard)
        is_gap = before is not None and before.end != job.start
        crosses_isolation = (
            bool(wave) and job.shard != wave[0].shard and (is_isolated(job.shard) or is_isolated(wave[0].shard))
        )
        is_other_kind = bool(wave) and is_suspect(job) != is_suspect(wave[0])
        if runs_alone_now or is_gap or crosses_isolation or is_other_kind:
            passed.add(job.shard)
            continue
        if wave and (job.end - job.start > left or len(wave) >= max_jobs):
            break
        wave.append(job)
        last[job.shard] = job
        left -= job.end - job.start
    return wave


def without_followers(wave: Sequence[Job], lost: Job) -> list[Job]:
    """A wave without a job that somebody else has taken, nor those of its shard that come after it."""
    return [job for job in wave if job.shard != lost.shard or job.bucket < lost.bucket]
