"""Rewinds of the command line: shows the plan, and performs it if confirmed."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.errors import ExitCode, Fatal
from strandline.node.offsets.deployment import Deployment
from strandline.node.output import Block, Table
from strandline.node.shard.ownership import take_shard
from strandline.recovery.offset_policy import LogState
from strandline.recovery.periods import utc_text
from strandline.recovery.rewinding import RewindPlan, RewindRefused, Target, ToBucket, plan_rewind, rewind
from strandline.store.protocol import Fenced
from strandline.store.rows import ManifestRows, Ownership, ShardId


class RewindFenced(Fatal):
    """Another owner has taken over the shard during the rewind."""

    exit_code = ExitCode.FENCED


@dataclass(frozen=True, slots=True)
class RewindReport:
    """A planned or completed rewind: buckets `bucket` to `last_bucket`, offsets `[offset, behind)`.

    `records` counts offsets, which is an upper bound of the records. `samples` and `rows` are those that this rewind
    supersedes, without those of earlier rewinds.
    """

    shard: str
    bucket: int
    last_bucket: int
    time: str
    until: str
    offset: int
    behind: int
    buckets: int
    records: int
    samples: int
    rows: int
    done: bool

    def blocks(self) -> Iterator[Block]:
        """What is read again, and whether the rewind was done."""
        yield f"Shard {self.shard} reads again from offset {self.offset}, the start of bucket {self.bucket}:"
        yield Table(
            ("what", "from", "up to", "how many"),
            (
                ("offsets", str(self.offset), str(self.behind), f"at most {self.records:,} records"),
                ("buckets", str(self.bucket), str(self.last_bucket), f"{self.buckets:,} buckets"),
                ("time", self.time, self.until, f"{self.samples:,} stored samples"),
            ),
        )
        if not self.rows:
            yield "Nothing to do: all of this is already superseded."
        elif self.done:
            yield f"{self.rows:,} manifest rows are superseded. The next start of the shard reads this again."
        else:
            yield f"{self.rows:,} manifest rows would be superseded. Nothing was changed: add --yes to do it."


def show_rewind(deployment: Deployment, number: int, target: Target) -> RewindReport:
    """What a rewind would do. Raises `RewindRefused` if it is not possible."""
    shard = deployment.shard(number, deployment.topic.now())
    return _report(deployment, _planned(deployment, shard, target), done=False)


def do_rewind(deployment: Deployment, number: int, target: Target, *, by_force: bool) -> RewindReport:
    """Perform a rewind. `by_force` takes over the shard from a live owner. Raises `StillOwned`, `RewindFenced`, and
    `RewindRefused` if it is not possible, which is checked before ownership is taken.
    """
    shard = deployment.shard(number, deployment.topic.now())
    planned = _planned(deployment, shard, target)
    if not planned.rows:
        return _report(deployment, planned, done=False)

    def take() -> Ownership:
        return take_shard(deployment.store, shard, deployment.topic.now().topic_id, deployment.clock, by_force=by_force)

    def plan_of(manifest: ManifestRows) -> RewindPlan:
        # The same cut: the owner may have closed further buckets since it was planned.
        return _plan(deployment, shard, manifest, ToBucket(planned.bucket))

    try:
        done = rewind(deployment.store, take, plan_of, deployment.clock, deployment.present)
    except Fenced as error:
        raise RewindFenced(
            f"another owner has taken over shard {shard} during the rewind: {error.message}",
            remedy="Rows that are already superseded are read again. Stop that owner, check `strandline offsets"
            " history`, and rewind again",
        ) from error
    return _report(deployment, done, done=True)


def _planned(deployment: Deployment, shard: ShardId, target: Target) -> RewindPlan:
    manifest = deployment.manifest(shard)
    if manifest is None:
        raise RewindRefused(f"shard {shard} was never read: there is nothing to read again")
    return _plan(deployment, shard, manifest, target)


def _plan(deployment: Deployment, shard: ShardId, manifest: ManifestRows, target: Target) -> RewindPlan:
    topic_id, ends = deployment.topic.now().topic_id, deployment.topic.ends(shard.shard)
    log = LogState(topic_id, ends.start, ends.last_stable)
    return plan_rewind(shard, manifest, target, log, groups=deployment.groups, cutting=deployment.cutting)


def _report(deployment: Deployment, plan: RewindPlan, *, done: bool) -> RewindReport:
    interval = deployment.cutting.flush_interval
    return RewindReport(
        shard=str(plan.shard),
        bucket=plan.bucket,
        last_bucket=plan.last_bucket,
        time=utc_text(plan.bucket * interval),
        until=utc_text((plan.last_bucket + 1) * interval),
        offset=plan.offset,
        behind=plan.end,
        buckets=plan.buckets,
        records=plan.records,
        samples=plan.samples,
        rows=plan.rows,
        done=done,
    )
