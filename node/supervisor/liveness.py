"""Whether a child process is alive: its signs of life, and how long it may go without one. Pure.

A child that serves turns its loop several times a second, whatever Kafka and the store do, so a turn is what counts. A
start has stretches without one: the JVM, a check of the local copy, a call that waits for Kafka. There CPU use counts
as a sign of life as well; and since a start may also just wait for an answer, it may be silent for longer.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

STARTS_MAY_BE_SILENT = 5
"""A child that is starting may be silent for this many times `node.hang_after`: the longest waits of a shard's start
(for an answer of Kafka, and for the first record) are a minute each.
"""
# An idle process uses about 1 % of a core for its clients' threads.
_AT_WORK = 0.05
_LEAST_LOOK_S = 1.0


class Stage(StrEnum):
    """How far a child is, as far as its liveness is concerned. STARTING is patient and counts CPU use; BEHIND counts
    CPU use; STEADY and ENDING count turns alone.
    """

    STARTING = "starting"
    BEHIND = "behind"
    STEADY = "steady"
    ENDING = "ending"


_CPU_COUNTS = (Stage.STARTING, Stage.BEHIND)

Mark = tuple[str, int]
"""What changes with each sign of life that a child reports: its phase, and the turns of its loop."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What is seen of a process at one moment. `mark` is None without a report."""

    stage: Stage = Stage.STARTING
    mark: Mark | None = None
    cpu_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Liveness:
    """The last sign of life: when it was, and what was known then. `beats` counts them."""

    at: float
    stage: Stage = Stage.STARTING
    mark: Mark | None = None
    cpu_seconds: float | None = None
    beats: int = 0

    @property
    def is_turning(self) -> bool:
        """Whether the child's loop should be turning, as far as is known."""
        return self.stage in (Stage.BEHIND, Stage.STEADY)

    def silent_for(self, now: float) -> float:
        """Seconds without a sign of life."""
        return max(0.0, now - self.at)

    def after(self, signs: Signs, now: float) -> "Liveness":
        """The liveness after another look."""
        reported = signs.mark is not None and signs.mark != self.mark
        if reported or self._works(signs, now):
            stage, mark = (signs.stage, signs.mark) if reported else (self.stage, self.mark)
            return Liveness(now, stage, mark, signs.cpu_seconds, self.beats + 1)
        return self if self.cpu_seconds is not None else replace(self, cpu_seconds=signs.cpu_seconds)

    def excused(self, seconds: float) -> "Liveness":
        """Not counting a time in which the supervisor did not look: if it stood still, so did the machine."""
        return replace(self, at=self.at + seconds)

    def is_lost(self, now: float, hang_after_s: float) -> bool:
        """Whether the process hangs, in its work or in its end."""
        return self.silent_for(now) >= hang_after_s * (STARTS_MAY_BE_SILENT if self.stage is Stage.STARTING else 1)

    def _works(self, signs: Signs, now: float) -> bool:
        """Whether its CPU time shows that a start goes on."""
        if self.stage not in _CPU_COUNTS or signs.cpu_seconds is None or self.cpu_seconds is None:
            return False
        silent = self.silent_for(now)
        return silent >= _LEAST_LOOK_S and signs.cpu_seconds - self.cpu_seconds >= _AT_WORK * silent
