"""What systemd is told about a node, decided from how its processes stand. Pure.

- READY=1 once every shard is active, or has no process: one that is down, that another node has taken, or that failed
  and waits for its next try must not have systemd end the others for a start that takes too long. At least one has to
  be active. The same holds for the front: it answers, or has failed.
- EXTEND_TIMEOUT_USEC while a shard that is not active has got further since the last time; and while there is nothing
  that another start of the node would mend, because all shards are down or wait, or Kafka is out of reach.
- WATCHDOG=1 if the supervisor's thread has turned since the last time, and so has the loop of the front and of every
  shard that reads. A process that still starts is watched by the supervisor alone.
- STATUS= when it has changed: how many shards are active, what the others do, and which other process has failed.
"""

from dataclasses import dataclass, field, replace

from strandline.node.status.processes import FRONT, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.status.progress import describe, describe_process
from strandline.node.supervisor.processes import ProcessVital
from strandline.node.supervisor.supervisor import Vitals

WATCHDOG = "WATCHDOG=1"
EXTENSION_S = 180
"""For how much longer a start may take after each step forward."""
_EXTEND_EVERY_S = 10.0
_MOST_DESCRIBED = 8
_MOST_WORDS = 300

Marks = tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """A node at one moment."""

    shards: tuple[ShardProcessStatus, ...]
    vitals: Vitals
    now: float
    now_ms: int
    waits_for: str = ""
    processes: tuple[ProcessStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What systemd knows by now, and what was seen when it was told."""

    ready: bool = False
    status: str = ""
    marks: Marks = ()
    extended_at: float = float("-inf")
    fed_at: float = float("-inf")
    fed_by: Vitals = field(default_factory=Vitals)


def tell(told: Told, seen: Seen, watchdog_s: float | None) -> tuple[tuple[str, ...], Told]:
    """What to tell systemd now, and what it knows then."""
    lines: list[str] = []
    if not told.ready:
        if is_settled(seen.shards) and _front_is_settled(seen.processes):
            lines.append("READY=1")
            told = replace(told, ready=True)
        elif seen.now - told.extended_at >= _EXTEND_EVERY_S:
            marks = _marks(seen.shards)
            if any(mark not in told.marks for mark in marks) or _would_start_in_vain(seen):
                lines.append(f"EXTEND_TIMEOUT_USEC={EXTENSION_S * 1_000_000}")
            told = replace(told, marks=marks, extended_at=seen.now)
    # Twice as often as is asked for, as sd_watchdog_enabled(3) advises.
    if watchdog_s is not None and seen.now - told.fed_at >= watchdog_s / 2 and _all_live(told.fed_by, seen.vitals):
        lines.append(WATCHDOG)
        told = replace(told, fed_at=seen.now, fed_by=seen.vitals)
    if (status := status_text(seen)) != told.status:
        lines.append(f"STATUS={status}")
        told = replace(told, status=status)
    return tuple(lines), told


def is_settled(shards: tuple[ShardProcessStatus, ...]) -> bool:
    """Whether the start is over: none is still on its way, and some have arrived."""
    return any(shard.is_active for shard in shards) and all(
        shard.is_active or _has_no_process(shard) for shard in shards
    )


def _front_is_settled(processes: tuple[ProcessStatus, ...]) -> bool:
    """Whether the front answers, or has failed; a node without one has nothing to wait for."""
    return all(
        process.state is ProcessState.RUNNING or process.has_failed for process in processes if process.name == FRONT
    )


def status_text(seen: Seen) -> str:
    """The node in a line."""
    return "; ".join((*_shards_text(seen), *_failed_text(seen.processes)))


def _failed_text(processes: tuple[ProcessStatus, ...]) -> list[str]:
    return [f"{process.name} {describe_process(process)[:_MOST_WORDS]}" for process in processes if process.has_failed]


def _shards_text(seen: Seen) -> list[str]:
    if not seen.shards:
        return [f"waiting for Kafka: {seen.waits_for}" if seen.waits_for else "starting"]
    active = sum(shard.is_active for shard in seen.shards)
    total = len(seen.shards)
    parts = [f"{active} of {total} shard{'s' if total > 1 else ''} active"]
    others = [shard for shard in seen.shards if not shard.is_ready]
    parts += [
        f"shard {shard.shard} {describe(shard, seen.now_ms)[:_MOST_WORDS]}"
        for shard in sorted(others, key=_worst_first)[:_MOST_DESCRIBED]
    ]
    if len(others) > _MOST_DESCRIBED:
        parts.append(f"and {len(others) - _MOST_DESCRIBED} more")
    return parts


def _worst_first(shard: ShardProcessStatus) -> tuple[bool, bool, int]:
    return shard.state is not ProcessState.DOWN, shard.state is not ProcessState.WAITING, shard.shard


def _has_no_process(shard: ShardProcessStatus) -> bool:
    """Whether the shard has failed, and the supervisor, a person or another node has the next word."""
    return shard.state in (ProcessState.WAITING, ProcessState.DOWN)


def _would_start_in_vain(seen: Seen) -> bool:
    """Whether the node can only wait, and a new one could, too; but this one tells why."""
    return all(map(_has_no_process, seen.shards)) if seen.shards else bool(seen.waits_for)


def _marks(shards: tuple[ShardProcessStatus, ...]) -> Marks:
    """How far each shard is that is on its way."""
    return tuple(
        (shard.shard, shard.pid, status.phase, status.fraction, status.turns, status.lag)
        for shard in shards
        if not shard.is_active and shard.report is not None
        for status in (shard.report.status,)
    )


def _all_live(before: Vitals, now: Vitals) -> bool:
    if now.turns <= before.turns:
        return False
    known = {process.name: process for process in before.processes}
    return all(
        _lives(known.get(process.name), process)
        for process in now.processes
        if process.pid is not None and process.turning
    )


def _lives(before: ProcessVital | None, now: ProcessVital) -> bool:
    return before is None or before.pid != now.pid or now.beats > before.beats
