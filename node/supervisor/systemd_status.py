"""Decides what a node notifies systemd of, from the status of its processes. Pure.

- READY=1 once every shard is active or has no process, and at least one is active. Shards that are down, were taken
  over by another node, or wait for a restart don't count: otherwise systemd would kill the healthy ones when the start
  times out. The front must answer, or have failed.
- EXTEND_TIMEOUT_USEC while a shard that is not active makes progress, and while a restart of the node would not help,
  because all shards are down or waiting, or Kafka is unreachable.
- WATCHDOG=1 if the supervisor's thread, the loop of the front and the loop of every shard that reads have iterated
  since the last time. Starting processes are monitored by the supervisor only.
- STATUS= when it has changed: how many shards are active, what the others do, and which other process has failed.
"""

from dataclasses import dataclass, field, replace

from strandline.node.status.processes import FRONT, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.status.progress import describe, describe_process
from strandline.node.supervisor.processes import ProcessHeartbeat
from strandline.node.supervisor.supervisor import Heartbeats

WATCHDOG = "WATCHDOG=1"
EXTENSION_S = 180
"""The additional time for a start each time it has made progress."""
_EXTEND_EVERY_S = 10.0
_MAX_DESCRIBED = 8
_MAX_CHARACTERS = 300

StartProgress = tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class NodeObservation:
    """The status of a node at one moment."""

    shards: tuple[ShardProcessStatus, ...]
    heartbeats: Heartbeats
    now: float
    now_ms: int
    waits_for: str = ""
    processes: tuple[ProcessStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class Notified:
    """What systemd has been notified of, and the observations at that time."""

    ready: bool = False
    status: str = ""
    progress: StartProgress = ()
    extended_at: float = float("-inf")
    fed_at: float = float("-inf")
    fed_by: Heartbeats = field(default_factory=Heartbeats)


def notifications(
    notified: Notified, seen: NodeObservation, watchdog_s: float | None
) -> tuple[tuple[str, ...], Notified]:
    """The assignments to send now, and what systemd has been notified of afterwards."""
    lines: list[str] = []
    if not notified.ready:
        if is_settled(seen.shards) and _front_is_settled(seen.processes):
            lines.append("READY=1")
            notified = replace(notified, ready=True)
        elif seen.now - notified.extended_at >= _EXTEND_EVERY_S:
            progress = _start_progress(seen.shards)
            if any(one not in notified.progress for one in progress) or _is_restart_useless(seen):
                lines.append(f"EXTEND_TIMEOUT_USEC={EXTENSION_S * 1_000_000}")
            notified = replace(notified, progress=progress, extended_at=seen.now)
    # Twice as often as required, as sd_watchdog_enabled(3) recommends.
    if (
        watchdog_s is not None
        and seen.now - notified.fed_at >= watchdog_s / 2
        and _all_live(notified.fed_by, seen.heartbeats)
    ):
        lines.append(WATCHDOG)
        notified = replace(notified, fed_at=seen.now, fed_by=seen.heartbeats)
    if (status := status_text(seen)) != notified.status:
        lines.append(f"STATUS={status}")
        notified = replace(notified, status=status)
    return tuple(lines), notified


def is_settled(shards: tuple[ShardProcessStatus, ...]) -> bool:
    """Whether the start is over: at least one shard is active, and none is still starting."""
    return any(shard.is_active for shard in shards) and all(
        shard.is_active or _has_no_process(shard) for shard in shards
    )


def _front_is_settled(processes: tuple[ProcessStatus, ...]) -> bool:
    """Whether the front answers or has failed. True without a front."""
    return all(
        process.state is ProcessState.RUNNING or process.has_failed for process in processes if process.name == FRONT
    )


def status_text(seen: NodeObservation) -> str:
    """The status of the node in a line."""
    return "; ".join((*_shards_text(seen), *_failed_text(seen.processes)))


def _failed_text(processes: tuple[ProcessStatus, ...]) -> list[str]:
    return [
        f"{process.name} {describe_process(process)[:_MAX_CHARACTERS]}" for process in processes if process.has_failed
    ]


def _shards_text(seen: NodeObservation) -> list[str]:
    if not seen.shards:
        return [f"waiting for Kafka: {seen.waits_for}" if seen.waits_for else "starting"]
    active = sum(shard.is_active for shard in seen.shards)
    total = len(seen.shards)
    parts = [f"{active} of {total} shard{'s' if total > 1 else ''} active"]
    others = [shard for shard in seen.shards if not shard.is_ready]
    parts += [
        f"shard {shard.shard} {describe(shard, seen.now_ms)[:_MAX_CHARACTERS]}"
        for shard in sorted(others, key=_by_severity)[:_MAX_DESCRIBED]
    ]
    if len(others) > _MAX_DESCRIBED:
        parts.append(f"and {len(others) - _MAX_DESCRIBED} more")
    return parts


def _by_severity(shard: ShardProcessStatus) -> tuple[bool, bool, int]:
    return shard.state is not ProcessState.DOWN, shard.state is not ProcessState.WAITING, shard.shard


def _has_no_process(shard: ShardProcessStatus) -> bool:
    """Whether the shard has ended, and waits for a restart, an operator or another node."""
    return shard.state in (ProcessState.WAITING, ProcessState.DOWN)


def _is_restart_useless(seen: NodeObservation) -> bool:
    """Whether a restart of the node would not help: it would wait for the same thing, and lose the known reasons."""
    return all(map(_has_no_process, seen.shards)) if seen.shards else bool(seen.waits_for)


def _start_progress(shards: tuple[ShardProcessStatus, ...]) -> StartProgress:
    """The progress of each starting shard."""
    return tuple(
        (shard.shard, shard.pid, status.phase, status.fraction, status.turns, status.lag)
        for shard in shards
        if not shard.is_active and shard.report is not None
        for status in (shard.report.status,)
    )


def _all_live(before: Heartbeats, now: Heartbeats) -> bool:
    if now.iterations <= before.iterations:
        return False
    known = {process.name: process for process in before.processes}
    return all(
        _lives(known.get(process.name), process)
        for process in now.processes
        if process.pid is not None and process.must_iterate
    )


def _lives(before: ProcessHeartbeat | None, now: ProcessHeartbeat) -> bool:
    return before is None or before.pid != now.pid or now.beats > before.beats
