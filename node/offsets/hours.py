"""Whether an hour or a day is ready: asked once, or until it is."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.clock import wait_until
from strandline.errors import Retryable
from strandline.node.offsets.deployment import Deployment
from strandline.node.offsets.texts import ranges, span
from strandline.node.output import Block, Table
from strandline.recovery.periods import Period
from strandline.recovery.readiness import AcceptedLoss, BehindPartition, Readiness, Verdict, readiness

_ASK_AGAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class ReadyReport:
    """The answer, and all that goes with it."""

    ready: bool
    readiness: Readiness

    def blocks(self) -> Iterator[Block]:
        """The answer in one line, and what there is to say about it."""
        told = self.readiness
        match told.verdict:
            case Verdict.READY:
                yield f"{told.period} is ready, revision {told.revision}, late samples: {told.late_samples:,}"
            case Verdict.UNKNOWN:
                yield f"{told.period} is unknown: {told.reason}."
            case Verdict.NOT_READY:
                yield f"{told.period} is not ready: {told.reason}." if told.reason else f"{told.period} is not ready."
        if told.hours > 1 and told.first_not_ready is not None:
            yield f"{told.ready_hours} of {told.hours} hours are ready, {told.first_not_ready} is the first that is not"
        if told.rewound_samples:
            yield f"Late samples that are read again after a rewind, and can't be found now: {told.rewound_samples:,}"
        if told.behind:
            columns = ("partition", "stored up to bucket", "needed", "missing groups", "behind")
            yield Table(columns, tuple(map(_behind, told.behind)))
        for loss in told.losses:
            yield _loss(loss)
        if told.started_later:
            yield f"Partitions that were first read later, and do not count: {ranges(told.started_later)}"


def check_ready(deployment: Deployment, period: Period) -> ReadyReport:
    """By the manifests as they are now. Raises `LogUnreachable` if nobody says which partitions there are."""
    # The bucket before the first one that may hold the period's records tells whether a shard had begun by then.
    first = deployment.cutting.bucket_of(period.start) - 1
    found = readiness(deployment.stored(deployment.topic.now(), first), period)
    return ReadyReport(found.verdict is Verdict.READY, found)


def wait_for(deployment: Deployment, period: Period, seconds: float) -> ReadyReport:
    """Ask again until it is ready, or can't be told, or the time is over. What may pass is waited for too; if it lasts
    to the end, it is raised.
    """
    report: ReadyReport | None = None
    trouble: Retryable | None = None

    def is_settled() -> bool:
        nonlocal report, trouble
        try:
            report, trouble = check_ready(deployment, period), None
        except Retryable as error:
            trouble = error
            return False
        return report.readiness.verdict is not Verdict.NOT_READY

    wait_until(is_settled, timeout=seconds, clock=deployment.clock, poll=_ASK_AGAIN_S)
    if trouble is not None or report is None:
        raise trouble or Retryable(f"nobody has told whether {period} is ready")
    return report


def _behind(one: BehindPartition) -> tuple[str, ...]:
    if one.reached_bucket is None or one.behind_ms is None:
        return (str(one.shard), "never read", str(one.needed_bucket), "all", "-")
    groups = ranges(one.missing_groups)
    return (str(one.shard), str(one.reached_bucket), str(one.needed_bucket), groups, span(one.behind_ms))


def _loss(loss: AcceptedLoss) -> str:
    behind = str(loss.behind) if loss.behind is not None else "its end"
    return (
        f"Partition {loss.shard}: offsets from {loss.first} up to {behind} were lost ({loss.reason}), in bucket"
        f" {ranges(loss.buckets)}; that was accepted."
    )
