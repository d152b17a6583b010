"""Which jobs are read together: a pure choice among those that nobody has."""

from collections.abc import Iterable, Sequence

from strandline.recovery.leasing import is_leasable
from strandline.store.jobs import Job
from strandline.store.rows import ShardId


def next_wave(ordered: Iterable[Job], most_records: int) -> list[Job]:
    """The next jobs to be read in one go, from jobs in order of their urgency.

    Of each shard one range of offsets without a gap, since a partition is read from one offset to another; no more than
    `most_records` offsets, but one job at least. A job that has failed, or that took its worker with it, is read alone:
    so it is known which one it was.
    """
    wave: list[Job] = []
    last: dict[ShardId, Job] = {}
    left = most_records
    passed: set[ShardId] = set()
    for job in ordered:
        if not is_leasable(job) or job.shard in passed:
            continue
        if not wave and job.failures:
            return [job]
        before = last.get(job.shard)
        if job.failures or (before is not None and before.end != job.start):
            passed.add(job.shard)
            continue
        if wave and job.end - job.start > left:
            break
        wave.append(job)
        last[job.shard] = job
        left -= job.end - job.start
    return wave


def without_followers(wave: Sequence[Job], lost: Job) -> list[Job]:
    """A wave without a job that somebody else has taken, nor those of its shard that come after it."""
    return [job for job in wave if job.shard != lost.shard or job.bucket < lost.bucket]
