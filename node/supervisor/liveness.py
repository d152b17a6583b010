"""Whether a child process is alive: when its last heartbeat was, and how long it may go without one. Pure.

The loop of a serving child iterates several times a second, whatever Kafka and the store do, so an iteration is a
heartbeat. During a start there are phases without iterations: the JVM starts, the local copy is checked, a call waits
for Kafka. There, CPU use also counts as a heartbeat. A start may also wait for an answer without using CPU, so its
timeout is longer.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

START_TIMEOUT_FACTOR = 5
"""A starting child may go without a heartbeat for this many times `node.hang_after`. The longest waits of a shard's
start (for an answer of Kafka, and for the first record) are a minute each.
"""
# CPU use above this share of a core counts as work. An idle process uses about 1 % for its clients' threads.
_MIN_CPU_SHARE = 0.05
_MIN_CPU_INTERVAL_S = 1.0


class Stage(StrEnum):
    """What counts as a heartbeat of a child. STARTING: iterations and CPU use, with a longer timeout. BEHIND:
    iterations and CPU use. STEADY and ENDING: iterations only.
    """

    STARTING = "starting"
    BEHIND = "behind"
    STEADY = "steady"
    ENDING = "ending"


_CPU_COUNTS = (Stage.STARTING, Stage.BEHIND)

LoopProgress = tuple[str, int]
"""What changes with each heartbeat that a child reports: its phase and the number of its loop's iterations."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A process at one moment. Without a report, `progress` is None."""

    stage: Stage = Stage.STARTING
    progress: LoopProgress | None = None
    cpu_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Liveness:
    """The last heartbeat: its time, and what was observed then. `beats` counts heartbeats."""

    at: float
    stage: Stage = Stage.STARTING
    progress: LoopProgress | None = None
    cpu_seconds: float | None = None
    beats: int = 0

    @property
    def must_iterate(self) -> bool:
        """Whether the child's loop is expected to iterate."""
        return self.stage in (Stage.BEHIND, Stage.STEADY)

    def silent_for(self, now: float) -> float:
        """Seconds since the last heartbeat."""
        return max(0.0, now - self.at)

    def after(self, observed: Observation, now: float) -> "Liveness":
        """The liveness after an observation."""
        reported = observed.progress is not None and observed.progress != self.progress
        if reported or self._uses_cpu(observed, now):
            stage, progress = (observed.stage, observed.progress) if reported else (self.stage, self.progress)
            return Liveness(now, stage, progress, observed.cpu_seconds, self.beats + 1)
        return self if self.cpu_seconds is not None else replace(self, cpu_seconds=observed.cpu_seconds)

    def discounting(self, seconds: float) -> "Liveness":
        """Exclude a time in which the supervisor itself did not run: the machine may have been suspended."""
        return replace(self, at=self.at + seconds)

    def hangs(self, now: float, hang_after_s: float) -> bool:
        """Whether the process hangs: it has had no heartbeat for too long."""
        return self.silent_for(now) >= hang_after_s * (START_TIMEOUT_FACTOR if self.stage is Stage.STARTING else 1)

    def _uses_cpu(self, observed: Observation, now: float) -> bool:
        """Whether its CPU time shows that it makes progress."""
        if self.stage not in _CPU_COUNTS or observed.cpu_seconds is None or self.cpu_seconds is None:
            return False
        silent = self.silent_for(now)
        return silent >= _MIN_CPU_INTERVAL_S and observed.cpu_seconds - self.cpu_seconds >= _MIN_CPU_SHARE * silent
