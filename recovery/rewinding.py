"""Rewinds: making a shard read again from an earlier cut, for example because its records were decoded wrongly.

The manifest rows after the cut are marked superseded; nothing is deleted. A superseded row is a hole, so the next start
reads from the cut and writes the rows again. Index rows stay, for the keys and ids in their buckets, and so does the
next part id. Rows are marked from the newest bucket to the oldest, in complete buckets. If the rewind is interrupted,
the result is a rewind to a later cut, and running it again finishes it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog

from strandline.clock import Clock
from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.recovery.checkpoints import Progress, progress
from strandline.recovery.cutting import Cutting
from strandline.recovery.offset_policy import LogMismatch, LogState
from strandline.recovery.periods import utc_text
from strandline.recovery.present import Present
from strandline.store.batches import batches, row_bytes
from strandline.store.protocol import Store
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ManifestWrite, Ownership, ShardId

MAX_ROWS_PER_BATCH = 1_000
_HEARTBEAT_INTERVAL_S = 10.0
_TRIES = 10
_LOG = structlog.get_logger(__name__)


class RewindRefused(Fatal):
    """The shard can't be rewound to the target."""


class JobsNotRemoved(Retryable):
    """The replay jobs of a shard could not be removed."""


@dataclass(frozen=True, slots=True)
class ToBucket:
    """Read again from the start of this bucket."""

    bucket: int


@dataclass(frozen=True, slots=True)
class ToTime:
    """Read again from the newest cut that is not after this time, a record time in milliseconds."""

    time: int


@dataclass(frozen=True, slots=True)
class ToOffset:
    """Read again from this offset, which must be a cut."""

    offset: int


Target = ToBucket | ToTime | ToOffset


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """What a rewind will do. Buckets from `bucket` to `last_bucket` are read again: the offsets `[offset, end)`.

    `batches` are the rows to mark, in order. None of them is superseded already, and each batch has complete buckets,
    newest first.
    """

    shard: ShardId
    bucket: int
    last_bucket: int
    offset: int
    end: int
    batches: tuple[tuple[GroupRow, ...], ...] = field(repr=False)

    @property
    def rows(self) -> int:
        """How many rows will be marked."""
        return sum(len(batch) for batch in self.batches)

    @property
    def samples(self) -> int:
        """How many stored samples will be read again."""
        return sum(row.samples for batch in self.batches for row in batch)

    @property
    def records(self) -> int:
        """How many offsets will be read again, an upper bound of the records."""
        return self.end - self.offset

    @property
    def buckets(self) -> int:
        """How many buckets will be read again."""
        return self.last_bucket - self.bucket + 1


def plan_rewind(
    shard: ShardId,
    manifest: ManifestRows,
    target: Target,
    log: LogState,
    *,
    groups: int,
    cutting: Cutting,
    most_rows: int = MAX_ROWS_PER_BATCH,
) -> RewindPlan:
    """Plan a rewind. Changes nothing.

    Raises `RewindRefused` if there is no such cut, or the log or the manifest no longer reaches back to it, and
    `LogMismatch` if the log is not the one that was read.
    """
    done = progress(manifest, groups, shard)
    if done is None:
        raise RewindRefused(f"shard {shard} was never read, so there is nothing to rewind")
    _check_log(shard, manifest.state.topic_id, done, log)
    # A reset is not a bucket, and nothing before it can be reached.
    cuts = [cut for cut in done.cuts if not cut.reset]
    possible = [cut for cut in cuts if cut.start >= log.start]
    if not cuts:
        raise RewindRefused(f"shard {shard} has not closed a bucket yet, so there is nothing to rewind")
    if not possible:
        raise RewindRefused(
            f"shard {shard} has no cut to rewind to: the log starts at offset {log.start}",
            remedy="What Kafka has deleted can't be read again",
        )
    first = _chosen(shard, cuts, target, cutting, _Reach(possible[0], done.cuts[0]))
    if first.start < log.start:
        raise RewindRefused(
            f"shard {shard} can't be rewound to bucket {first.bucket}, offset {first.start}: the log starts at offset"
            f" {log.start}",
            remedy=f"The oldest possible target is {_described(possible[0], cutting)}",
        )
    rows = [row for row in manifest.groups if row.bucket >= first.bucket and not row.superseded]
    return RewindPlan(shard, first.bucket, cuts[-1].bucket, first.start, cuts[-1].end, tuple(_batches(rows, most_rows)))


def rewind(
    store: Store,
    take: Callable[[], Ownership],
    plan_of: Callable[[ManifestRows], RewindPlan],
    clock: Clock,
    present: Present,
) -> RewindPlan:
    """Take ownership of the shard, mark the rows, and give up ownership. Returns the executed plan, made from the
    manifest as it was after taking ownership.

    `take` takes ownership; `plan_of` is `plan_rewind` with all parameters except the manifest. Raises what either
    raises, and `Fenced` if another process takes the shard meanwhile. Rows that were marked by then stay marked, which
    is a rewind to a later cut.
    """
    # Marked rows are written again with a lifetime that counts from the present, so that no single clock decides it.
    present.poll_store_clock()
    ownership = take()
    try:
        manifest = store.manifest(ownership.shard)
        if manifest is None:
            raise RewindRefused(f"the manifest of {ownership.shard} has disappeared after taking ownership")
        plan = plan_of(manifest)
        mark_superseded(store, ownership, plan, clock, present)
    except BaseException:
        # Give up ownership, so that the next owner need not wait for our heartbeats to expire. If another process owns
        # the shard by now, the store refuses this write.
        with suppress(StrandlineError):
            store.touch(ownership, None, 0)
        raise
    try:
        store.touch(ownership, None, 0)
    except Retryable as error:
        _LOG.warning("could not give up ownership after a rewind", shard=str(ownership.shard), error=str(error))
    return plan


def _withdraw_jobs(store: Store, plan: RewindPlan) -> None:
    """Remove the replay jobs of the rewound buckets. Otherwise the next owner would use the results of finished jobs
    instead of reading again. Workers that have leased one lose their leases.
    """
    for _ in range(_TRIES):
        jobs = [job for job in store.jobs(plan.shard) if job.bucket >= plan.bucket]
        for job in jobs:
            store.remove_job(job)
        if not jobs:
            return
    raise JobsNotRemoved(
        f"workers kept changing the replay jobs of {plan.shard} while they were being removed",
        remedy="Try again. If this happens again, stop the workers first",
    )


def mark_superseded(store: Store, ownership: Ownership, plan: RewindPlan, clock: Clock, present: Present) -> None:
    """Execute a plan as the owner of the shard. Raises `Fenced`, `JobsNotRemoved`, and other errors of the store."""
    _withdraw_jobs(store, plan)
    last_heartbeat, beats = clock.monotonic(), 0
    for batch in plan.batches:
        marked = tuple(replace(row, superseded=True) for row in batch)
        store.commit(ownership, ManifestWrite(groups=marked, present=present.now_ms()))
        if clock.monotonic() - last_heartbeat >= _HEARTBEAT_INTERVAL_S:
            last_heartbeat, beats = clock.monotonic(), beats + 1
            store.touch(ownership, clock.now_ms(), beats)


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far back a rewind can go: the oldest bucket that the log still has, and where the manifest starts."""

    oldest: CutRow
    beginning: CutRow


def _check_log(shard: ShardId, stored_topic_id: str, done: Progress, log: LogState) -> None:
    if stored_topic_id != log.topic_id:
        raise LogMismatch(
            f"shard {shard} was read from another topic: the topic's id is {log.topic_id}, the stored id is"
            f" {stored_topic_id}",
            remedy="Records of a deleted topic can't be read again",
        )
    if done.cuts[-1].end > log.end:
        raise LogMismatch(
            f"shard {shard} was read up to offset {done.cuts[-1].end}, and the log ends at {log.end}",
            remedy="The log was truncated or restored from an older copy. The lost records can't be read again",
        )


def _chosen(shard: ShardId, cuts: Sequence[CutRow], target: Target, cutting: Cutting, reach: _Reach) -> CutRow:
    """The first bucket to read again."""
    match target:
        case ToOffset(offset):
            return _at_offset(shard, cuts, offset, cutting, reach)
        case ToTime(time):
            bucket, target_text = (
                cutting.bucket_of(time),
                f"{utc_text(time)}, which is in bucket {cutting.bucket_of(time)}",
            )
        case ToBucket(bucket):
            target_text = f"bucket {bucket}"
    if bucket > cuts[-1].bucket:
        raise RewindRefused(
            f"shard {shard} can't be rewound to {target_text}: the newest bucket that was closed is {cuts[-1].bucket}",
            remedy="Records of the open bucket are read at the next start anyway",
        )
    if bucket < cuts[0].bucket:
        raise RewindRefused(
            f"shard {shard} can't be rewound to {target_text}: {_why_not_before(cuts[0], reach)}",
            remedy=f"The oldest possible target is {_described(reach.oldest, cutting)}",
        )
    return cuts[bucket - cuts[0].bucket]


def _at_offset(shard: ShardId, cuts: Sequence[CutRow], offset: int, cutting: Cutting, reach: _Reach) -> CutRow:
    # Empty buckets start at the same offset as the next one. The newest is chosen: the others have nothing to read.
    found = max((cut for cut in cuts if cut.start == offset), key=lambda cut: cut.bucket, default=None)
    if found is not None:
        return found
    if offset < cuts[0].start:
        raise RewindRefused(
            f"shard {shard} can't be rewound to offset {offset}: {_why_not_before(cuts[0], reach)}",
            remedy=f"The oldest possible target is {_described(reach.oldest, cutting)}",
        )
    if offset >= cuts[-1].end:
        raise RewindRefused(
            f"shard {shard} can't be rewound to offset {offset}: the newest bucket that was closed is"
            f" {cuts[-1].bucket}, up to offset {cuts[-1].end}",
            remedy="Records of the open bucket are read at the next start anyway",
        )
    inside = next(cut for cut in cuts if cut.start < offset < cut.end)
    raise RewindRefused(
        f"offset {offset} of shard {shard} is inside bucket {inside.bucket}, but a rewind needs a cut",
        remedy=f"The nearest cuts are at the offsets {inside.start} and {inside.end}",
    )


def _why_not_before(first: CutRow, reach: _Reach) -> str:
    if reach.beginning.reset:
        return f"reading started, or was reset, at offset {reach.beginning.end} with bucket {first.bucket}"
    return f"the manifest reaches back to bucket {first.bucket}, offset {first.start}"


def _described(cut: CutRow, cutting: Cutting) -> str:
    begins = utc_text(cutting.deadline(cut.bucket - 1))
    return f"bucket {cut.bucket}, offset {cut.start}, which starts at {begins}"


def _batches(rows: Sequence[GroupRow], most: int) -> list[tuple[GroupRow, ...]]:
    """Complete buckets, newest first, as many per batch as fit by rows and bytes. A bucket is split only if it alone
    does not fit.
    """
    buckets: dict[int, list[GroupRow]] = {}
    for row in sorted(rows, key=lambda one: (-one.bucket, one.group)):
        buckets.setdefault(row.bucket, []).append(row)
    complete = batches(
        buckets.values(),
        lambda members: sum(map(row_bytes, members)),
        max_rows=most,
        rows_of=len,
    )
    together = [[row for members in some for row in members] for some in complete]
    return [tuple(piece) for some in together for piece in batches(some, row_bytes, max_rows=most)]
