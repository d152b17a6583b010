"""Shards and hours for the status page, with a status that a test sets."""

from dataclasses import dataclass, field

from strandline.errors import StrandlineError
from strandline.node.page.hours import HourReadiness
from strandline.node.shard.report import BufferFigures, ProcessFigures, ShardReport
from strandline.node.shard.status import Counters, Phase, Status
from strandline.node.status.processes import FRONT, WORKER, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import Verdict

GB = 10**9


def report(phase: Phase = Phase.ACTIVE, **status: object) -> ShardReport:
    """The report of a shard in this phase."""
    return ShardReport(
        Status(phase=phase, counters=Counters(samples=1_000_000), **status),  # type: ignore[arg-type]
        ProcessFigures(4711, 12.5, GB, GB),
        position=120_000,
        checkpoint=100_000,
        keys=612_345,
        unstored_buckets=1,
        buffer=BufferFigures(series=600_000, samples=9_000_000, memory_bytes=48_000_000),
    )


def active(shard: int) -> ShardProcessStatus:
    """A healthy shard."""
    return ShardProcessStatus(shard, ProcessState.RUNNING, 4000 + shard, report=report(lag=12, time_left=600_000_000))


def recovering(shard: int, phase: Phase, fraction: float | None, *, entered_ms: int = 0) -> ShardProcessStatus:
    """A starting shard."""
    shard_report = report(phase, fraction=fraction, lag=250_000, entered={phase.value: entered_ms})
    return ShardProcessStatus(shard, ProcessState.RUNNING, 4000 + shard, report=shard_report)


@dataclass(slots=True)
class PublishedStatus:
    """Shards whose status a test sets."""

    statuses: tuple[ShardProcessStatus, ...] = (active(0), active(1))
    others: tuple[ProcessStatus, ...] = (
        ProcessStatus(FRONT, ProcessState.RUNNING, 3999),
        ProcessStatus(WORKER, ProcessState.STOPPED),
    )
    started: int = 0
    waiting: str = ""

    def waits_for(self) -> str:
        return self.waiting

    def partitions(self) -> int | None:
        return len(self.statuses)

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        return self.statuses

    def processes(self) -> tuple[ProcessStatus, ...]:
        return self.others

    def started_ms(self) -> int:
        return self.started


@dataclass(slots=True)
class FakeHours:
    """All hours except the current one are ready. `failure` is raised instead, and `replaced` replaces single hours."""

    failure: StrandlineError | None = None
    replaced: dict[int, HourReadiness] = field(default_factory=dict)

    def hours(self, first: int, last: int) -> tuple[HourReadiness, ...]:
        if self.failure is not None:
            raise self.failure
        ready = [_hour(hour, Verdict.READY) for hour in range(first, last)]
        return (
            *(self.replaced.get(first + place, hour) for place, hour in enumerate(ready)),
            _hour(last, Verdict.NOT_READY),
        )


def _hour(hour: int, verdict: Verdict) -> HourReadiness:
    behind = (1,) if verdict is Verdict.NOT_READY else ()
    return HourReadiness(str(Period(hour)), hour * HOUR, verdict, 0, 0, behind=behind)
