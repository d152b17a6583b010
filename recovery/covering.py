"""What replay jobs that are done protect: their records may go from the log, since what was in them is in the store.

Until the owner has committed their rows the manifest says nothing of that. A start that finds the log behind its
checkpoint looks here before it says that data is lost.
"""

from collections.abc import Callable, Iterable

from strandline.recovery.checkpoints import Progress
from strandline.recovery.planning import jobs_for, satisfies
from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId


def covered_up_to(done: Progress, shard: ShardId, jobs: Iterable[Job], has_result: Callable[[Job], bool]) -> int:
    """The offset from which on something is neither stored nor read by a job that is done and left its result."""
    wanted = {job.bucket: job for job in jobs_for(done, shard, plan="", life=0).jobs}
    finished = {job.bucket: job for job in jobs if job.state is JobState.DONE}
    offset = done.resume_at
    for cut in done.cuts:
        if cut.end <= offset:
            continue
        needed, job = wanted.get(cut.bucket), finished.get(cut.bucket)
        if needed is not None and not (job is not None and satisfies(job, needed) and has_result(job)):
            break
        offset = cut.end
    return offset
