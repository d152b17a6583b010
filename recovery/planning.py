"""The replay plan of a shard: which buckets have to be read again, as jobs. Pure functions over the manifest's rows,
Kafka's offsets and the existing jobs.

A plan becomes durable in two steps: the owner commits the cuts, then `adopt` decides how the jobs in the store become
those that the cuts need.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from strandline.recovery.checkpoints import Progress, designated_group
from strandline.recovery.log_ends import LogEnds
from strandline.recovery.offset_policy import DataLost, LogMismatch
from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId


@dataclass(frozen=True, slots=True)
class WantedJobs:
    """What has to be read again, oldest bucket first. `empty` are the buckets that lack rows but have no records: their
    rows can be written without reading.
    """

    jobs: tuple[Job, ...]
    empty: tuple[int, ...]

    @property
    def records(self) -> int:
        """The number of offsets in the jobs, an upper bound of their records."""
        return sum(job.end - job.start for job in self.jobs)


def jobs_for(done: Progress, shard: ShardId, *, plan: str, life: int, settings: str = "") -> WantedJobs:
    """A job for each bucket that has a cut and lacks the rows of some groups.

    Keys are wanted from the index's open bucket on. For earlier buckets, the stored index buckets are authoritative.
    """
    open_bucket = done.stored_up_to[designated_group(shard, len(done.stored_up_to))] + 1
    jobs: list[Job] = []
    empty: list[int] = []
    for cut in done.cuts:
        missing = done.missing.get(cut.bucket, frozenset())
        if not missing:
            continue
        start = max(cut.start, cut.lost_to or 0)
        if start >= cut.end:
            empty.append(cut.bucket)
            continue
        jobs.append(
            Job(
                shard,
                cut.bucket,
                plan,
                start,
                cut.end,
                missing,
                wants_keys=cut.bucket >= open_bucket,
                life=life,
                settings=settings,
            )
        )
    return WantedJobs(tuple(jobs), tuple(empty))


@dataclass(frozen=True, slots=True)
class Adoption:
    """How the existing jobs become the wanted ones. `replace` has pairs: the existing job, and what it becomes."""

    keep: tuple[Job, ...]
    add: tuple[Job, ...]
    replace: tuple[tuple[Job, Job], ...]
    remove: tuple[Job, ...]

    @property
    def changes_nothing(self) -> bool:
        """Whether the existing jobs are the wanted ones already."""
        return not (self.add or self.replace or self.remove)


def adopt(
    existing: Iterable[Job], wanted: Iterable[Job], is_gone: Callable[[str], bool], *, is_start: bool = True
) -> Adoption:
    """What a shard's owner does with the jobs of the previous owner.

    Finished jobs stay done, valid leases are left to their workers, and a job that no longer satisfies what is needed
    becomes a new one. Epochs never decrease: an attempt is a plan and an epoch, and no two leases may share one. With
    `is_start`, failures are reset, because something was changed or restarted, and failed jobs become pending again.
    """
    there = {job.bucket: job for job in existing}
    keep: list[Job] = []
    add: list[Job] = []
    changed: list[tuple[Job, Job]] = []
    for job in wanted:
        old = there.pop(job.bucket, None)
        if old is None:
            add.append(job)
            continue
        new = _adopted(old, job, is_gone, is_start=is_start)
        if new == old:
            keep.append(old)
        else:
            changed.append((old, new))
    return Adoption(tuple(keep), tuple(add), tuple(changed), tuple(there.values()))


def _adopted(old: Job, wanted: Job, is_gone: Callable[[str], bool], *, is_start: bool) -> Job:
    if not satisfies(old, wanted):
        return replace(wanted, epoch=old.epoch)
    life = max(old.life, wanted.life)
    pending = replace(
        old,
        state=JobState.PENDING,
        worker="",
        leased_until=0,
        failures=0,
        reason="",
        life=life,
        # As the owner would read it now. Finished jobs were read with the settings of an earlier owner.
        settings=wanted.settings,
    )
    match old.state:
        case JobState.DONE:
            return old
        case JobState.LEASED if not is_start or not is_gone(old.worker):
            return old
        case _:
            return pending if is_start else old


def satisfies(old: Job, wanted: Job) -> bool:
    """Whether a job, once done, produces everything that is wanted."""
    same_range = (old.start, old.end) == (wanted.start, wanted.end)
    return same_range and old.groups >= wanted.groups and old.wants_keys >= wanted.wants_keys


def covered_up_to(done: Progress, shard: ShardId, jobs: Iterable[Job], has_result: Callable[[Job], bool]) -> int:
    """The first offset that is neither stored nor in a finished job that left its result. Kafka may delete the records
    before it.

    The manifest does not have the rows of finished jobs until the owner commits them. A start that finds the log's
    start past its checkpoint uses this before it reports a loss.
    """
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


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """The plan of a shard: its jobs, and the log and end for which it was made. It has to be checked again before the
    jobs run.
    """

    shard: ShardId
    topic_id: str
    end: int
    wanted: WantedJobs


def recheck(plan: ShardPlan, ends: LogEnds, topic_id: str) -> None:
    """Raise if the log has changed since the plan was made: `DataLost` if it no longer has a job's first offset,
    `LogMismatch` if it belongs to another topic or ends before the plan does.
    """
    where = f"partition {plan.shard}"
    if topic_id != plan.topic_id:
        raise LogMismatch(
            f"{where} is another topic than the one that the plan was made for: its id is {topic_id}, and it was"
            f" {plan.topic_id}",
            remedy="The topic was deleted and recreated meanwhile: accept that, or restore it, and plan again",
        )
    if ends.last_stable < plan.end:
        raise LogMismatch(
            f"{where} ends at offset {ends.last_stable}, before {plan.end}, where the plan ends",
            remedy="The log was truncated or restored from an older copy meanwhile: restore it, or accept a new"
            " beginning, and plan again",
        )
    first = min((job.start for job in plan.wanted.jobs), default=ends.start)
    if first < ends.start:
        raise DataLost(where, first, ends.start)
