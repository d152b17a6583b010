"""The figures of shards and processes that the page shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.node.shard.phases import lag_seconds, phase_seconds, seconds_left
from strandline.node.status.processes import ProcessStatus, ShardProcessStatus
from strandline.recovery.present import describe_wrong_clocks


@dataclass(frozen=True, slots=True)
class BufferFigures:
    """The open bucket's part of the write buffer."""

    series: int
    samples: int
    memory_bytes: int
    spilled_bytes: int


@dataclass(frozen=True, slots=True)
class ShardFigures:
    """One shard. Figures from its report are None without one.

    `progress` is the completed share of the phase, `time_left_s` the estimated rest. `lag` counts offsets, and `lag_s`
    is
    how long some records may have been waiting. `held_back` counts offsets behind an open transaction. `kafka_keeps_ms`
    is the retention margin; None if unlimited or unknown. `samples` and `dead_letters` count from the start of the
    process. `store_unanswered_s` is how long the store has not answered; None while it does. `start_s` are the seconds
    that each phase of the start took, `replay_jobs` the number of replay jobs by state during a replay.
    `clocks_ahead_ms` is by how much each clock is ahead of the present; a wrong clock is also in `reason`, unless there
    is a more important one.
    """

    shard: int
    process: str
    active: bool
    pid: int | None
    restarts: int
    starts_in_s: float | None
    exit_code: int | None
    reason: str
    phase: str | None = None
    progress: float | None = None
    time_left_s: float | None = None
    lag: int | None = None
    lag_s: float | None = None
    held_back: int | None = None
    kafka_keeps_ms: int | None = None
    keys: int | None = None
    unstored_buckets: int | None = None
    position: int | None = None
    checkpoint: int | None = None
    samples: int | None = None
    dead_letters: int | None = None
    memory_bytes: int | None = None
    buffer: BufferFigures | None = None
    store: str = ""
    store_unanswered_s: float | None = None
    start_s: Mapping[str, float] = field(default_factory=dict)
    replay_jobs: Mapping[str, int] = field(default_factory=dict)
    clocks_ahead_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChildProcessFigures:
    """The process of the front or the replay worker."""

    name: str
    process: str
    pid: int | None
    restarts: int
    starts_in_s: float | None
    exit_code: int | None
    reason: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """A node: its dataset, its start, its shards and its other processes. Times are milliseconds. `waits_for` is the
    reason why it has no shards yet. `partitions` is the topic's number; the node may serve only some of them.
    """

    dataset: str
    version: str
    started_ms: int
    now_ms: int
    shards: tuple[ShardFigures, ...]
    processes: tuple[ChildProcessFigures, ...] = ()
    waits_for: str = ""
    partitions: int | None = None


def process_figures(process: ProcessStatus) -> ChildProcessFigures:
    """The figures of the front's or the worker's process."""
    return ChildProcessFigures(
        process.name,
        process.state.value,
        process.pid,
        process.restarts,
        process.starts_in_s,
        process.exit_code,
        process.reason,
        process.process.resident_bytes if process.process is not None else None,
    )


def figures_of(process: ShardProcessStatus, now_ms: int) -> ShardFigures:
    """The figures of a shard."""
    report = process.report
    if report is None:
        return ShardFigures(
            process.shard,
            process.state.value,
            process.is_active,
            process.pid,
            process.restarts,
            process.starts_in_s,
            process.exit_code,
            process.reason,
        )
    status, buffer = report.status, report.buffer
    return ShardFigures(
        process.shard,
        process.state.value,
        process.is_active,
        process.pid,
        process.restarts,
        process.starts_in_s,
        process.exit_code,
        # The reason why a process ended is more important than its last warnings.
        process.reason or status.reason or status.stuck or describe_wrong_clocks(report.clocks) or report.topic_warning,
        phase=status.phase.value,
        progress=status.fraction,
        time_left_s=seconds_left(status, now_ms),
        lag=status.lag,
        lag_s=lag_seconds(report, now_ms),
        held_back=report.transaction.records if report.transaction is not None else None,
        kafka_keeps_ms=status.time_left,
        keys=report.keys,
        unstored_buckets=report.unstored_buckets,
        position=report.position,
        checkpoint=report.checkpoint,
        samples=status.counters.samples,
        dead_letters=status.counters.dead_letters,
        memory_bytes=report.process.resident_bytes,
        buffer=BufferFigures(buffer.series, buffer.samples, buffer.memory_bytes, buffer.spilled_bytes),
        store=report.store.name,
        store_unanswered_s=process.store_unanswered_s,
        start_s={phase.value: seconds for phase, seconds in phase_seconds(status, now_ms).items()},
        replay_jobs=report.jobs,
        clocks_ahead_ms=report.clocks,
    )
