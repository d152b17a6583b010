"""Plans the replay of what a start has missed: by the shard itself, or by jobs for workers.

The cuts of all complete buckets are committed first, so that jobs, workers and the next owner agree on them. Then the
jobs of the previous owner are adopted, so that finished jobs are not repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from strandline.errors import Retryable
from strandline.node.shard.log_times import log_times
from strandline.node.shard.manifest_view import ManifestView
from strandline.node.shard.options import ReplayMode
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.replaying import Replay, ReplayBucket
from strandline.node.shard.starting import ManifestMissing, ReadingPlan
from strandline.node.shard.status import Status
from strandline.recovery.checkpoints import Progress
from strandline.recovery.cut_planning import planned_cuts
from strandline.recovery.cutting import Cutting
from strandline.recovery.job_board import JobBoard
from strandline.recovery.log_ends import LogEnds
from strandline.recovery.plan_id import new_plan_id
from strandline.recovery.planning import ShardPlan, WantedJobs, jobs_for, recheck
from strandline.recovery.replay.job_settings import settings_text
from strandline.store.batches import batches, row_bytes
from strandline.store.jobs import JobState
from strandline.store.rows import ManifestWrite, Ownership

_LOG = structlog.get_logger(__name__)
_CUTS_PER_COMMIT = 500


class JobsContended(Retryable):
    """Other processes kept changing the shard's jobs while its owner adopted them."""


@dataclass(frozen=True, slots=True)
class _Pinned:
    """The ends of the log, and the present before they were requested."""

    present: int
    ends: LogEnds


def plan_replay(
    parts: ShardParts,
    ownership: Ownership,
    view: ManifestView,
    plan: ReadingPlan,
    status: Status,
) -> tuple[ReadingPlan, Replay | None]:
    """How the shard continues from the settled offsets: by reading itself, or after a replay by workers.

    In both cases, the cuts of all complete buckets are decided first, so that the buckets are the same with and without
    workers.
    """
    pinned = _Pinned(parts.present.now_ms(), parts.log.ends())
    by_workers = _is_for_workers(parts, pinned.ends, plan)
    if not by_workers:
        # Remove the jobs of an old plan.
        _board(parts).adopt(parts.options.shard, ())
    _commit_cuts(parts, ownership, view, lost_to=plan.lost_to, pinned=pinned, status=status)
    done = _progress(view, parts)
    buckets = _buckets(parts, done, view.topic_id, pinned) if by_workers else ()
    if not buckets:
        return plan.with_cuts(done), None
    if parts.replays is None:
        raise ValueError("the shard has jobs but no replay service")
    if any(bucket.job is not None for bucket in buckets):
        parts.replays.ensure_worker()
    store, margin = parts.store, parts.options.policy.margin
    replay = Replay(
        store,
        parts.options.shard,
        buckets,
        parts.replays,
        parts.clock,
        job_lifetime=margin,
        failures_allowed=parts.options.replay.failures_allowed,
    )
    return plan.after_last_cut(done), replay


def _is_for_workers(parts: ShardParts, ends: LogEnds, plan: ReadingPlan) -> bool:
    options = parts.options.replay
    if parts.replays is None:
        return False
    if plan.position < ends.start:
        return True  # The log no longer has these records: workers have read them, and only their results are left.
    if options.mode is ReplayMode.DIRECT:
        return False
    return options.mode is ReplayMode.SPARK or ends.last_stable - plan.position > options.threshold


def _commit_cuts(
    parts: ShardParts,
    ownership: Ownership,
    view: ManifestView,
    *,
    lost_to: int | None,
    pinned: _Pinned,
    status: Status,
) -> None:
    options, newest = parts.options, _progress(view, parts).cuts[-1]
    cutting = Cutting(options.policy.flush_interval, options.grace)
    times = log_times(parts.log, status)
    planned = planned_cuts(newest, pinned.ends, pinned.present, times, cutting, read_to=lost_to)
    present = parts.present.now_ms()
    expires = view.row_expiry(present + options.row_lifetime)
    rows = (cut.row(expires, lost_to) for cut in planned)
    for some in batches(rows, row_bytes, max_rows=_CUTS_PER_COMMIT):
        write = ManifestWrite(cuts=tuple(some), present=present)
        parts.store.commit(ownership, write)
        view.committed(write)


def _buckets(parts: ShardParts, done: Progress, topic_id: str, pinned: _Pinned) -> Sequence[ReplayBucket]:
    """The buckets that lack rows, with their jobs, which this adds to the store."""
    options = parts.options
    # A job lives for the margin: after that, Kafka has deleted the records, and the job could not be done.
    settings = settings_text(options.replay_settings)
    plan = new_plan_id(pinned.present)
    wanted = jobs_for(done, options.shard, plan=plan, life=options.policy.margin, settings=settings)
    adopted = _board(parts).adopt(options.shard, wanted.jobs)
    if adopted is None:
        raise JobsContended(
            f"the jobs of shard {options.shard} were repeatedly changed by other processes",
            remedy="Check which other processes plan its jobs: a shard has one owner",
        )
    unread = WantedJobs(tuple(job for job in adopted if job.state is not JobState.DONE), ())
    recheck(ShardPlan(options.shard, topic_id, done.cuts[-1].end, unread), pinned.ends, parts.log.topic_id())
    jobs = {job.bucket: job for job in adopted}
    _LOG.info("replay by workers", shard=str(options.shard), jobs=len(jobs), records=wanted.records)
    first = min(done.stored_up_to) + 1
    return [
        ReplayBucket(cut, done.missing[cut.bucket], jobs.get(cut.bucket))
        for cut in done.cuts
        if cut.bucket >= first and not cut.reset
    ]


def _board(parts: ShardParts) -> JobBoard:
    return JobBoard(parts.store, parts.clock, is_gone=parts.processes.is_gone)


def _progress(view: ManifestView, parts: ShardParts) -> Progress:
    done = view.progress()
    if done is None:
        raise ManifestMissing(f"the manifest of {parts.options.shard} has no cut row")
    return done
