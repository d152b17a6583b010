"""Checks whether an hour or day is ready, and waits for it."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.clock import wait_until
from strandline.errors import Retryable
from strandline.node.offsets.deployment import Deployment
from strandline.node.offsets.texts import ranges, span
from strandline.node.output import Block, Table
from strandline.recovery.periods import Period
from strandline.recovery.readiness import AcceptedLoss, BehindPartition, Readiness, Verdict, readiness

_POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class ReadyReport:
    """Whether a period is ready, and why."""

    ready: bool
    readiness: Readiness

    def blocks(self) -> Iterator[Block]:
        """The verdict in one line, then details."""
        found = self.readiness
        match found.verdict:
            case Verdict.READY:
                yield f"{found.period} is ready, revision {found.revision}, late samples: {found.late_samples:,}"
            case Verdict.UNKNOWN:
                yield f"{found.period} is unknown: {found.reason}."
            case Verdict.NOT_READY:
                reason = f": {found.reason}" if found.reason else ""
                yield f"{found.period} is not ready{reason}."
        if found.hours > 1 and found.first_not_ready is not None:
            yield f"{found.ready_hours} of {found.hours} hours are ready; first that is not: {found.first_not_ready}"
        if found.rewound_samples:
            yield f"Late samples that are unavailable until a rewind has read them again: {found.rewound_samples:,}"
        if found.behind:
            columns = ("partition", "stored up to bucket", "needed", "missing groups", "behind")
            yield Table(columns, tuple(map(_behind, found.behind)))
        for loss in found.losses:
            yield _loss(loss)
        if found.started_later:
            yield f"Partitions that were first read later and do not count: {ranges(found.started_later)}"


def check_ready(deployment: Deployment, period: Period) -> ReadyReport:
    """The readiness according to the current manifests. Raises `LogUnreachable` if the brokers don't answer."""
    # The bucket before the period's first one shows whether the shard had started by then.
    first = deployment.cutting.bucket_of(period.start) - 1
    found = readiness(deployment.stored(deployment.topic.now(), first), period)
    return ReadyReport(found.verdict is Verdict.READY, found)


def wait_for(deployment: Deployment, period: Period, seconds: float) -> ReadyReport:
    """Check until the period is ready or unknown, or until the timeout. Retryable errors are retried; the last one is
    raised at the timeout.
    """
    report: ReadyReport | None = None
    failure: Retryable | None = None

    def is_settled() -> bool:
        nonlocal report, failure
        try:
            report, failure = check_ready(deployment, period), None
        except Retryable as error:
            failure = error
            return False
        return report.readiness.verdict is not Verdict.NOT_READY

    wait_until(is_settled, timeout=seconds, clock=deployment.clock, poll=_POLL_S)
    if failure is not None or report is None:
        raise failure or Retryable(f"the readiness of {period} could not be checked")
    return report


def _behind(one: BehindPartition) -> tuple[str, ...]:
    if one.reached_bucket is None or one.behind_ms is None:
        return (str(one.shard), "never read", str(one.needed_bucket), "all", "-")
    groups = ranges(one.missing_groups)
    return (str(one.shard), str(one.reached_bucket), str(one.needed_bucket), groups, span(one.behind_ms))


def _loss(loss: AcceptedLoss) -> str:
    behind = str(loss.behind) if loss.behind is not None else "its end"
    return (
        f"Partition {loss.shard}: accepted loss of offsets from {loss.first} up to {behind} ({loss.reason}), in bucket"
        f" {ranges(loss.buckets)}."
    )
