"""Plans what a start of one shard would replay: makes the same decisions as a start, but writes nothing.

The cuts that a start would commit are added to the committed ones, and the jobs follow from both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.clock import Clock
from strandline.node.shard.log import PartitionLog
from strandline.node.shard.log_times import log_times
from strandline.node.shard.options import ShardOptions
from strandline.recovery.checkpoints import Progress, designated_group, index_rows, progress, without_expired_buckets
from strandline.recovery.cut_planning import planned_cuts
from strandline.recovery.cutting import NO_TIME, Cutting
from strandline.recovery.estimates import Estimate, Rates, estimate, sample_offsets
from strandline.recovery.leasing import never_gone
from strandline.recovery.log_ends import LogEnds
from strandline.recovery.offset_policy import (
    Accepted,
    LogState,
    Resume,
    StartAt,
    StartFresh,
    decide,
)
from strandline.recovery.planning import adopt, jobs_for
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ShardState

_NO_STATE = ShardState(epoch=0, owner="", seen_at=None, topic_id="", next_part_id=0)
_READ_TIMEOUT_S = 5.0
_NEVER = 2**62


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """The plan of a shard. `new_cuts` counts the buckets that a start would cut. `jobs` are the replay jobs that it
    would plan; `done` are the buckets of those that are already done. `tail` is the number of offsets after the last
    complete bucket, which the shard reads itself. `bytes_per_record` is None if no record could be sampled.
    """

    decision: Resume | StartFresh
    ends: LogEnds
    topic_id: str
    index_rows: Sequence[GroupRow]
    new_cuts: int
    jobs: tuple[Job, ...]
    done: frozenset[int]
    empty: tuple[int, ...]
    tail: int
    bytes_per_record: float | None

    def to_do(self) -> list[Job]:
        """The jobs that are not done."""
        return [job for job in self.jobs if job.bucket not in self.done]

    def estimate(self, rates: Rates) -> Estimate:
        """The estimate of what is left to replay."""
        return estimate(self.to_do(), self.bytes_per_record, rates)


def find_plan(options: ShardOptions, log: PartitionLog, store: Store, clock: Clock) -> FoundPlan:
    """Plan the start of a shard. Raises `DataLost` and `LogMismatch` like a start that needs an operator's decision."""
    shape = store.dataset(options.shard.dataset) or options.shape
    manifest = store.manifest(options.shard) or ManifestRows(_NO_STATE, (), ())
    now = clock.now_ms()
    manifest = without_expired_buckets(manifest, now)
    known, topic_id = progress(manifest, options.groups, options.shard), log.topic_id()
    ends = log.ends()
    log_now = LogState(topic_id, ends.start, ends.last_stable, _look_back(options, log, now))
    decision = _decision(options, manifest, known, log_now, partitions=shape.partitions)
    cutting = Cutting(options.policy.flush_interval, options.grace)
    cuts = list(manifest.cuts)
    if isinstance(decision, StartFresh):
        cuts.append(_first_cut(cutting, log, decision.offset, ends, now))
    newest = max(cuts, key=lambda cut: cut.bucket)
    new = planned_cuts(newest, ends, now, log_times(log), cutting)
    planned = replace(manifest, cuts=(*cuts, *(cut.row(_NEVER) for cut in new)))
    done = progress(planned, options.groups, options.shard)
    if done is None:
        raise ValueError(f"{options.shard} has no valid cut")
    wanted = jobs_for(done, options.shard, plan="planned", life=0)
    kept = adopt(store.jobs(options.shard), wanted.jobs, never_gone).keep
    done_already = frozenset(job.bucket for job in kept if job.state is JobState.DONE)
    left = [job for job in wanted.jobs if job.bucket not in done_already]
    return FoundPlan(
        decision=decision,
        ends=ends,
        topic_id=topic_id,
        index_rows=index_rows(manifest, designated_group(options.shard, options.groups), now),
        new_cuts=len(new),
        jobs=wanted.jobs,
        done=done_already,
        empty=wanted.empty,
        tail=max(0, ends.last_stable - done.cuts[-1].end),
        bytes_per_record=mean_record_size(log, left, ends),
    )


def mean_record_size(log: PartitionLog, jobs: Sequence[Job], ends: LogEnds) -> float | None:
    """The mean size of a few records from all jobs; None if there are none."""
    sizes: list[int] = []
    for offset in sample_offsets(jobs):
        if offset < ends.last_stable:
            log.seek(offset)
            # Reads the first record from there on: the offset may be that of a transaction marker.
            sizes += [len(value) for value in log.poll(1, _READ_TIMEOUT_S).values]
    return sum(sizes) / len(sizes) if sizes else None


def _decision(
    options: ShardOptions, manifest: ManifestRows, known: Progress | None, now: LogState, *, partitions: int
) -> Resume | StartFresh:
    decision = decide(
        f"partition {options.shard}",
        known.resume_at if known is not None else None,
        manifest.state.topic_id,
        now,
        in_dataset=options.shard.shard < partitions,
        first_start=options.first_start,
        accepted=Accepted(),
        furthest=known.cuts[-1].end if known is not None else 0,
    )
    if not isinstance(decision, Resume | StartFresh):
        raise TypeError(f"{decision} needs an operator's consent, which was not given")
    return decision


def _look_back(options: ShardOptions, log: PartitionLog, now: int) -> int | None:
    first_start = options.first_start
    return log.offset_at(now - first_start.look_back) if first_start.at is StartAt.LOOK_BACK else None


def _first_cut(cutting: Cutting, log: PartitionLog, offset: int, ends: LogEnds, now: int) -> CutRow:
    """The cut that a first start commits: the bucket before the one of the record at the offset, or before the current
    one.
    """
    time = now
    if offset < ends.last_stable:
        log.seek(offset)
        records = log.poll(1, _READ_TIMEOUT_S)
        time = min(now, int(records.times[0])) if len(records) and records.times[0] != NO_TIME else now
    return CutRow(cutting.bucket_of(time) - 1, offset, offset, _NEVER, reset=True)
