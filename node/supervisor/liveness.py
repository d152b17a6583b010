"""Whether a child process is alive: when its last heartbeat was, and how long it may go without one. Pure.

The loop of a child that serves turns several times a second, whatever Kafka and the store do, so a turn is a heartbeat.
During a start there are stretches without turns: the JVM starts, the local copy is checked, a call waits for Kafka.
There CPU use counts as a heartbeat, too; and since a start may just wait for an answer, it may be silent for longer.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

START_TIMEOUT_FACTOR = 5
"""A child that is starting may be silent for this many times `node.hang_after`: the longest waits of a shard's start
(for an answer of Kafka, and for the first record) are a minute each.
"""
# An idle process uses about 1 % of a core for its clients' threads.
_MIN_CPU_SHARE = 0.05
_MIN_CPU_INTERVAL_S = 1.0


class Stage(StrEnum):
    """What counts as a heartbeat of a child. STARTING: turns and CPU use, with a longer time-out. BEHIND: turns and CPU
    use. STEADY and ENDING: turns alone.
    """

    STARTING = "starting"
    BEHIND = "behind"
    STEADY = "steady"
    ENDING = "ending"


_CPU_COUNTS = (Stage.STARTING, Stage.BEHIND)

LoopProgress = tuple[str, int]
"""What changes with each heartbeat that a child reports: its phase, and the turns of its loop."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A process at one moment. `progress` is None without a report."""

    stage: Stage = Stage.STARTING
    progress: LoopProgress | None = None
    cpu_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Liveness:
    """The last heartbeat: when it was, and what was observed then. `beats` counts heartbeats."""

    at: float
    stage: Stage = Stage.STARTING
    progress: LoopProgress | None = None
    cpu_seconds: float | None = None
    beats: int = 0

    @property
    def must_iterate(self) -> bool:
        """Whether the child's loop is expected to turn."""
        return self.stage in (Stage.BEHIND, Stage.STEADY)

    def silent_for(self, now: float) -> float:
        """Seconds since the last heartbeat."""
        return max(0.0, now - self.at)

    def after(self, observed: Observation, now: float) -> "Liveness":
        """The liveness after another observation."""
        reported = observed.progress is not None and observed.progress != self.progress
        if reported or self._uses_cpu(observed, now):
            stage, progress = (observed.stage, observed.progress) if reported else (self.stage, self.progress)
            return Liveness(now, stage, progress, observed.cpu_seconds, self.beats + 1)
        return self if self.cpu_seconds is not None else replace(self, cpu_seconds=observed.cpu_seconds)

    def discounting(self, seconds: float) -> "Liveness":
        """Without a time in which the supervisor itself stood still: the machine may have been suspended."""
        return replace(self, at=self.at + seconds)

    def hangs(self, now: float, hang_after_s: float) -> bool:
        """Whether the process hangs, at work or while it ends."""
        return self.silent_for(now) >= hang_after_s * (START_TIMEOUT_FACTOR if self.stage is Stage.STARTING else 1)

    def _uses_cpu(self, observed: Observation, now: float) -> bool:
        """Whether its CPU time shows that the start makes progress."""
        if self.stage not in _CPU_COUNTS or observed.cpu_seconds is None or self.cpu_seconds is None:
            return False
        silent = self.silent_for(now)
        return silent >= _MIN_CPU_INTERVAL_S and observed.cpu_seconds - self.cpu_seconds >= _MIN_CPU_SHARE * silent
