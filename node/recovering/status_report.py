"""The report of `strandline recover status`: checkpoints of shards, and the state of their replay jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from strandline.errors import ExitCode
from strandline.node.output import Block, Table
from strandline.node.recovering.formatting import count, duration, moment
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS, designated_group, progress
from strandline.recovery.job_board import JobProgress
from strandline.recovery.present import describe_wrong_clocks
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import DatasetShape, ShardId

_MAX_SHOWN = 50


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One replay job. `lease_left_seconds` is None unless it is leased, and negative if the lease has expired."""

    bucket: int
    start: int
    end: int
    groups: int
    state: JobState
    epoch: int
    worker: str
    lease_left_seconds: float | None
    failures: int
    reason: str

    @classmethod
    def of(cls, job: Job, now: int) -> "JobStatus":
        """A job as of now."""
        return cls(
            bucket=job.bucket,
            start=job.start,
            end=job.end,
            groups=len(job.groups),
            state=job.state,
            epoch=job.epoch,
            worker=job.worker,
            lease_left_seconds=(job.leased_until - now) / 1000 if job.state is JobState.LEASED else None,
            failures=job.failures,
            reason=job.reason,
        )


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """One shard: its owner, its checkpoints, and its replay jobs. Offsets are None for a shard that was never read.
    `seen_at` is empty if the owner has released the shard.
    """

    shard: int
    owner: str
    epoch: int
    seen_at: str
    seen_seconds_ago: float | None
    checkpoint: int | None
    index_checkpoint: int | None
    newest_cut: int | None
    newest_bucket: int | None
    jobs_done: int
    fraction_done: float
    jobs: tuple[JobStatus, ...]

    @property
    def stopped(self) -> Sequence[JobStatus]:
        """The failed jobs, which have stopped the replay."""
        return [job for job in self.jobs if job.state is JobState.FAILED]


def shard_status(store: Store, shard: ShardId, groups: int, now: int) -> ShardStatus:
    """The status of a shard, from the store."""
    found = store.manifest(shard)
    manifest = found.unexpired(now + EXPIRY_SKEW_MS) if found is not None else None
    state = manifest.state if manifest is not None else None
    known = progress(manifest, groups, shard) if manifest is not None else None
    jobs = store.jobs(shard)
    standing = JobProgress.of(jobs)
    seen_at = state.seen_at if state is not None else None
    return ShardStatus(
        shard=shard.shard,
        owner=state.owner if state is not None else "",
        epoch=state.epoch if state is not None else 0,
        seen_at=moment(seen_at) if seen_at is not None else "",
        seen_seconds_ago=(now - seen_at) / 1000 if seen_at is not None else None,
        checkpoint=known.lowest if known is not None else None,
        index_checkpoint=known.checkpoints[designated_group(shard, groups)] if known is not None else None,
        newest_cut=known.cuts[-1].end if known is not None else None,
        newest_bucket=known.cuts[-1].bucket if known is not None else None,
        jobs_done=standing.done,
        fraction_done=standing.fraction,
        jobs=tuple(JobStatus.of(job, now) for job in jobs),
    )


def clock_differences(store: Store, own: int) -> Mapping[str, int]:
    """By how much this machine's clock is ahead of the store's. Which of the two is wrong is unknown."""
    server = store.server_time()
    return {"node": own - server} if server is not None else {}


def known_shards(store: Store, shape: DatasetShape) -> list[int]:
    """The shards with which the dataset was created, and later ones that were owned since then."""
    shard = shape.partitions
    while store.state(ShardId(shape.dataset, shard)) is not None:
        shard += 1
    return list(range(shard))


@dataclass(frozen=True, slots=True)
class RecoverStatus:
    """The chosen shards. `clocks_ahead_ms` is by how much this machine's clock is ahead of the store's."""

    dataset: str
    shards: tuple[ShardStatus, ...]
    clocks_ahead_ms: Mapping[str, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """FAILED if a replay has stopped."""
        return ExitCode.FAILED if any(shard.stopped for shard in self.shards) else ExitCode.OK

    def blocks(self) -> Iterable[Block]:
        """Tables and lines."""
        columns = ("shard", "owner", "epoch", "seen", "checkpoint", "index", "newest cut", "bucket", "jobs", "done")
        yield Table(columns, tuple(_shard_row(shard) for shard in self.shards))
        rows = [_job_row(shard, job) for shard in self.shards for job in shard.jobs if job.state is not JobState.DONE]
        if rows:
            of_jobs = ("shard", "bucket", "offsets", "state", "epoch", "lease left", "failures", "worker", "reason")
            yield Table(of_jobs, tuple(rows[:_MAX_SHOWN]))
        if len(rows) > _MAX_SHOWN:
            yield f"and {count(len(rows) - _MAX_SHOWN)} more, see --output json."
        if wrong := describe_wrong_clocks(self.clocks_ahead_ms):
            yield f"Clocks differ: {wrong}. Check time synchronisation."
        for shard in self.shards:
            for job in shard.stopped:
                yield (
                    f"The replay of shard {shard.shard} has stopped at bucket {job.bucket}: {job.reason}"
                    "\n  Fix the cause and restart the shard: finished jobs are kept."
                )


def _shard_row(shard: ShardStatus) -> tuple[str, ...]:
    seen = "released" if shard.owner else "never owned"
    if shard.seen_seconds_ago is not None:
        seen = f"{duration(shard.seen_seconds_ago)} ago"
    return (
        str(shard.shard),
        shard.owner[:8] or "-",
        str(shard.epoch),
        seen,
        _offset(shard.checkpoint),
        _offset(shard.index_checkpoint),
        _offset(shard.newest_cut),
        _offset(shard.newest_bucket),
        f"{shard.jobs_done} of {len(shard.jobs)}" if shard.jobs else "-",
        f"{shard.fraction_done:.0%}" if shard.jobs else "-",
    )


def _job_row(shard: ShardStatus, job: JobStatus) -> tuple[str, ...]:
    return (
        str(shard.shard),
        str(job.bucket),
        f"[{job.start}, {job.end})",
        job.state.value,
        str(job.epoch),
        duration(job.lease_left_seconds),
        str(job.failures),
        job.worker or "-",
        job.reason or "-",
    )


def _offset(number: int | None) -> str:
    return "-" if number is None else str(number)
