"""A rewind: a shard is to read again from an earlier cut on, say because its records were decoded wrongly.

What is to be read again is marked superseded in the manifest, row by row, and nothing is deleted. A superseded row is a
hole, so the next start reads from the cut on and writes the rows again. Index rows stay, for the keys and ids in their
buckets, and so does the next part id. Rows are marked newest bucket first and by whole buckets: wherever it is stopped,
what was done is a rewind to a later cut, and calling it again does the rest.
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
    """The shard can't be rewound to there."""


class JobsHeld(Retryable):
    """The replay jobs of a shard could not be taken away."""


@dataclass(frozen=True, slots=True)
class ToBucket:
    """Read again from the beginning of this bucket on."""

    bucket: int


@dataclass(frozen=True, slots=True)
class ToTime:
    """Read again from the newest cut on that is not after this time, in milliseconds, by the times of records."""

    time: int


@dataclass(frozen=True, slots=True)
class ToOffset:
    """Read again from this offset on, which must be a cut."""

    offset: int


Target = ToBucket | ToTime | ToOffset


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """What a rewind will do: buckets from `bucket` to `last_bucket` are read again, the offsets `[offset, behind)`.

    `batches` are the rows to be marked, in the order in which they are: none of them is superseded already, and each
    batch has whole buckets, newest first.
    """

    shard: ShardId
    bucket: int
    last_bucket: int
    offset: int
    behind: int
    batches: tuple[tuple[GroupRow, ...], ...] = field(repr=False)

    @property
    def rows(self) -> int:
        """How many rows are marked."""
        return sum(len(batch) for batch in self.batches)

    @property
    def samples(self) -> int:
        """How many stored samples are read again."""
        return sum(row.samples for batch in self.batches for row in batch)

    @property
    def records(self) -> int:
        """How many offsets are read again: no fewer than there are records."""
        return self.behind - self.offset

    @property
    def buckets(self) -> int:
        """How many buckets are read again."""
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
    """What it takes to have a shard read again from a cut on. Changes nothing.

    Raises `RewindRefused` if there is no such cut, or the log or the manifest no longer reaches back to it, and
    `LogMismatch` if the log is not the one that was read.
    """
    done = progress(manifest, groups, shard)
    if done is None:
        raise RewindRefused(f"shard {shard} was never read: there is nothing to read again")
    _check_log(shard, manifest.state.topic_id, done, log)
    # A reset is no bucket: what lies before it can't be reached.
    cuts = [cut for cut in done.cuts if not cut.reset]
    possible = [cut for cut in cuts if cut.start >= log.start]
    if not cuts:
        raise RewindRefused(f"shard {shard} has closed no bucket since it began: there is nothing to read again")
    if not possible:
        raise RewindRefused(
            f"shard {shard} has no cut that could be read from again: the log begins at offset {log.start}",
            remedy="What Kafka has deleted can't be read again",
        )
    first = _chosen(shard, cuts, target, cutting, _Reach(possible[0], done.cuts[0]))
    if first.start < log.start:
        raise RewindRefused(
            f"shard {shard} can't be rewound to bucket {first.bucket}, offset {first.start}: the log begins at offset"
            f" {log.start}",
            remedy=f"The oldest that is possible is {_described(possible[0], cutting)}",
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
    """Take the shard, mark the rows, and leave. What was done, by the manifest as it was once the shard was taken.

    `take` makes us the owner; `plan_of` is `plan_rewind` with all but the manifest. Raises what either raises, and
    `Fenced` if somebody takes the shard meanwhile: what is marked by then stays so, and is a rewind to a later cut.
    """
    # Marked rows are written anew, and live for as long as the present says: one clock must not end them.
    present.poll_store_clock()
    ownership = take()
    try:
        manifest = store.manifest(ownership.shard)
        if manifest is None:
            raise RewindRefused(f"the manifest of {ownership.shard} is gone, though the shard was just taken")
        plan = plan_of(manifest)
        mark_superseded(store, ownership, plan, clock, present)
    except BaseException:
        # Nobody has it then, and whoever wants it next need not wait until we count as gone. If it is another's by now,
        # the store does not let us say so.
        with suppress(StrandlineError):
            store.touch(ownership, None, 0)
        raise
    try:
        store.touch(ownership, None, 0)
    except Retryable as error:
        _LOG.warning("the owner could not say that it leaves", shard=str(ownership.shard), error=str(error))
    return plan


def _withdraw_jobs(store: Store, plan: RewindPlan) -> None:
    """Take away what workers were to read there, or have read: the next owner would take a job that is done for the
    reading again that this is about. A worker that has one loses its lease by that.
    """
    for _ in range(_TRIES):
        jobs = [job for job in store.jobs(plan.shard) if job.bucket >= plan.bucket]
        for job in jobs:
            store.remove_job(job)
        if not jobs:
            return
    raise JobsHeld(
        f"workers kept changing the replay jobs of {plan.shard} while they were taken away",
        remedy="Try again, and stop the workers if it happens again",
    )


def mark_superseded(store: Store, ownership: Ownership, plan: RewindPlan, clock: Clock, present: Present) -> None:
    """Do what was planned, as the owner of the shard. Raises `Fenced`, `JobsHeld`, and what else the store raises."""
    _withdraw_jobs(store, plan)
    seen, beats = clock.monotonic(), 0
    for batch in plan.batches:
        marked = tuple(replace(row, superseded=True) for row in batch)
        store.commit(ownership, ManifestWrite(groups=marked, present=present.now_ms()))
        if clock.monotonic() - seen >= _HEARTBEAT_INTERVAL_S:
            seen, beats = clock.monotonic(), beats + 1
            store.touch(ownership, clock.now_ms(), beats)


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far back a rewind can go: the oldest bucket that the log still has, and where the manifest begins."""

    oldest: CutRow
    beginning: CutRow


def _check_log(shard: ShardId, stored_topic_id: str, done: Progress, log: LogState) -> None:
    if stored_topic_id != log.topic_id:
        raise LogMismatch(
            f"shard {shard} was read from another topic: its id is {log.topic_id}, and {stored_topic_id} is stored",
            remedy="What was read from a topic that is gone can't be read again",
        )
    if done.cuts[-1].end > log.end:
        raise LogMismatch(
            f"shard {shard} was read up to offset {done.cuts[-1].end}, and the log ends at {log.end}",
            remedy="The log was truncated or restored from an older copy: what it has lost can't be read again",
        )


def _chosen(shard: ShardId, cuts: Sequence[CutRow], target: Target, cutting: Cutting, reach: _Reach) -> CutRow:
    """The first bucket to be read again."""
    match target:
        case ToOffset(offset):
            return _at_offset(shard, cuts, offset, cutting, reach)
        case ToTime(time):
            bucket, asked = cutting.bucket_of(time), f"{utc_text(time)}, which lies in bucket {cutting.bucket_of(time)}"
        case ToBucket(bucket):
            asked = f"bucket {bucket}"
    if bucket > cuts[-1].bucket:
        raise RewindRefused(
            f"shard {shard} can't be rewound to {asked}: the newest bucket that was closed is {cuts[-1].bucket}",
            remedy="What is not closed yet is read at the next start anyway",
        )
    if bucket < cuts[0].bucket:
        raise RewindRefused(
            f"shard {shard} can't be rewound to {asked}: {_why_not_before(cuts[0], reach)}",
            remedy=f"The oldest that is possible is {_described(reach.oldest, cutting)}",
        )
    return cuts[bucket - cuts[0].bucket]


def _at_offset(shard: ShardId, cuts: Sequence[CutRow], offset: int, cutting: Cutting, reach: _Reach) -> CutRow:
    # Of buckets without a record, which begin where the next one does, none has anything to read again.
    found = max((cut for cut in cuts if cut.start == offset), key=lambda cut: cut.bucket, default=None)
    if found is not None:
        return found
    if offset < cuts[0].start:
        raise RewindRefused(
            f"shard {shard} can't be rewound to offset {offset}: {_why_not_before(cuts[0], reach)}",
            remedy=f"The oldest that is possible is {_described(reach.oldest, cutting)}",
        )
    if offset >= cuts[-1].end:
        raise RewindRefused(
            f"shard {shard} can't be rewound to offset {offset}: the newest bucket that was closed is"
            f" {cuts[-1].bucket}, up to offset {cuts[-1].end}",
            remedy="What is not closed yet is read at the next start anyway",
        )
    inside = next(cut for cut in cuts if cut.start < offset < cut.end)
    raise RewindRefused(
        f"offset {offset} of shard {shard} lies inside bucket {inside.bucket}, and a rewind goes to a cut",
        remedy=f"The cuts around it are the offsets {inside.start} and {inside.end}",
    )


def _why_not_before(first: CutRow, reach: _Reach) -> str:
    if reach.beginning.reset:
        return f"its reading began, or began anew, at offset {reach.beginning.end} with bucket {first.bucket}"
    return f"the manifest reaches back to bucket {first.bucket}, offset {first.start}"


def _described(cut: CutRow, cutting: Cutting) -> str:
    begins = utc_text(cutting.deadline(cut.bucket - 1))
    return f"bucket {cut.bucket}, offset {cut.start}, which began at {begins}"


def _batches(rows: Sequence[GroupRow], most: int) -> list[tuple[GroupRow, ...]]:
    """Whole buckets, newest first, as many as fit by rows and bytes; one is split only if it does not fit by itself."""
    buckets: dict[int, list[GroupRow]] = {}
    for row in sorted(rows, key=lambda one: (-one.bucket, one.group)):
        buckets.setdefault(row.bucket, []).append(row)
    whole = batches(
        buckets.values(),
        lambda members: sum(map(row_bytes, members)),
        most_rows=most,
        rows_of=len,
    )
    together = [[row for members in some for row in members] for some in whole]
    return [tuple(piece) for some in together for piece in batches(some, row_bytes, most_rows=most)]
