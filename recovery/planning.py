"""The replay plan of a shard: which buckets of the log are whole, what has to be read again, and in which order.

Pure functions over the manifest's rows, Kafka's offsets and the jobs that are there. A plan is made durable in two
steps: the owner commits the cuts, then `adopt` says how the jobs in the store become those that the cuts ask for.
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
    """What has to be read again, oldest bucket first. `empty` are the buckets that lack rows and hold no record: those
    rows can be written without reading anything.
    """

    jobs: tuple[Job, ...]
    empty: tuple[int, ...]

    @property
    def records(self) -> int:
        """How many offsets lie in the jobs; no fewer than there are records."""
        return sum(job.end - job.start for job in self.jobs)


def jobs_for(done: Progress, shard: ShardId, *, plan: str, life: int, settings: str = "") -> WantedJobs:
    """A job for each bucket that has a cut and lacks rows of some groups.

    Keys are wanted from the index's open bucket on: below it the stored buckets are the truth about them.
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
    """How the jobs that are there become those that are wanted. `replace` holds pairs: the job, and what it becomes."""

    keep: tuple[Job, ...]
    add: tuple[Job, ...]
    replace: tuple[tuple[Job, Job], ...]
    remove: tuple[Job, ...]

    @property
    def changes_nothing(self) -> bool:
        """Whether all is as it should be."""
        return not (self.add or self.replace or self.remove)


def adopt(
    existing: Iterable[Job], wanted: Iterable[Job], is_gone: Callable[[str], bool], *, is_start: bool = True
) -> Adoption:
    """What a shard's owner does with the jobs of the owner before it.

    What is done stays done, a lease that runs is left to its worker, and a job that is no longer the right one becomes
    a new one. An epoch never falls: an attempt is a plan and an epoch, and no two leases may share one. With `is_start`
    failures are counted from zero again, since something was changed or restarted; what had failed is tried again.
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
        # As the owner would read it now. What is done was read as an owner before would have.
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
    """Whether a job, once done, gives all that is wanted."""
    same_range = (old.start, old.end) == (wanted.start, wanted.end)
    return same_range and old.groups >= wanted.groups and old.wants_keys >= wanted.wants_keys


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """What was planned for a shard: up to which end of which log, and the jobs. To be checked again before it runs."""

    shard: ShardId
    topic_id: str
    end: int
    wanted: WantedJobs


def recheck(plan: ShardPlan, ends: LogEnds, topic_id: str) -> None:
    """Raise what has become of the log since the plan was made: `DataLost` if it no longer has a job's first offset,
    `LogMismatch` if it is another topic or ends before the plan does.
    """
    where = f"partition {plan.shard}"
    if topic_id != plan.topic_id:
        raise LogMismatch(
            f"{where} is another topic than the one that the plan was made for: its id is {topic_id}, and it was"
            f" {plan.topic_id}",
            remedy="The topic was deleted and made again meanwhile: accept that, or restore it, and plan again",
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
