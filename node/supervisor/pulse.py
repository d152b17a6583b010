"""Whether a shard's process lives: signs of life, and how long it may be without one. Pure.

A shard that reads turns its loop several times a second, whatever Kafka and the store do, so a turn is what counts. A
start has stretches without one: the JVM, a check of the local copy, a look-up that waits for Kafka. There the use of
the CPU is a sign of life, too; and since a start may also just wait for an answer, it may be silent for longer.
"""

from dataclasses import dataclass, replace

from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Phase

STARTS_MAY_BE_SILENT = 5
"""So many times `node.hang_after` a start may be silent that has not begun to read: its longest waits (for an answer of
Kafka, and for the first record) are a minute each.
"""
# A process that does nothing uses about 1 % of a core for its clients' threads.
_AT_WORK = 0.05
_LEAST_LOOK_S = 1.0
# None is before the first word.
_BEFORE_READING = (None, Phase.ACQUIRING, Phase.RECOVERING_INDEX)
_BEHIND = (Phase.REPLAYING, Phase.CATCHING_UP)


@dataclass(frozen=True, slots=True)
class Signs:
    """What is seen of a process at one moment; None for what is not known."""

    phase: Phase | None = None
    turns: int | None = None
    cpu_seconds: float | None = None

    @classmethod
    def of(cls, report: ShardReport | None, cpu_seconds: float | None) -> "Signs":
        """A report, if there is a new one, and the CPU time that the kernel counts."""
        if report is None:
            return cls(cpu_seconds=cpu_seconds)
        return cls(report.status.phase, report.status.turns, cpu_seconds)


@dataclass(frozen=True, slots=True)
class Pulse:
    """The last sign of life: when it was, and what was known then. `beats` counts them."""

    at: float
    phase: Phase | None = None
    turns: int | None = None
    cpu_seconds: float | None = None
    beats: int = 0

    @property
    def reads(self) -> bool:
        """Whether the shard's loop turns, as far as is known."""
        return self.phase in (*_BEHIND, Phase.ACTIVE)

    def silent_for(self, now: float) -> float:
        """Seconds without a sign of life."""
        return max(0.0, now - self.at)

    def felt(self, signs: Signs, now: float) -> "Pulse":
        """The pulse after a look."""
        told = signs.phase is not None and (signs.phase, signs.turns) != (self.phase, self.turns)
        if told or self._works(signs, now):
            phase, turns = (signs.phase, signs.turns) if told else (self.phase, self.turns)
            return Pulse(now, phase, turns, signs.cpu_seconds, self.beats + 1)
        return self if self.cpu_seconds is not None else replace(self, cpu_seconds=signs.cpu_seconds)

    def excused(self, seconds: float) -> "Pulse":
        """Without so many seconds in which nobody looked: if we stood still, so did the machine."""
        return replace(self, at=self.at + seconds)

    def is_lost(self, now: float, hang_after_s: float) -> bool:
        """Whether the process hangs, be it in its work or in its end."""
        return self.silent_for(now) >= hang_after_s * (STARTS_MAY_BE_SILENT if self.phase in _BEFORE_READING else 1)

    def _works(self, signs: Signs, now: float) -> bool:
        """Whether the CPU time says that a start goes on."""
        if self.phase not in (*_BEFORE_READING, *_BEHIND) or signs.cpu_seconds is None or self.cpu_seconds is None:
            return False
        silent = self.silent_for(now)
        return silent >= _LEAST_LOOK_S and signs.cpu_seconds - self.cpu_seconds >= _AT_WORK * silent
