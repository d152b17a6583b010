"""How the processes of a node stand: values that the supervisor publishes and everything else reads."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase

FRONT, WORKER = "front", "worker"
"""The names of the processes that are no shards."""


class ProcessState(StrEnum):
    """The state of a process. WAITING will be started again after a pause; DOWN will not without a person. STOPPED is
    not wanted: the node ends, or there is no job for the worker.
    """

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    DOWN = "down"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ProcessStanding:
    """The front or the worker. `process` has its figures, None before its first report and after its end; `reason` says
    why it is not running. `starts_in_s` is the rest of the pause of one that waits.
    """

    name: str
    state: ProcessState
    pid: int | None = None
    restarts: int = 0
    starts_in_s: float | None = None
    exit_code: int | None = None
    reason: str = ""
    process: ProcessFigures | None = None

    @property
    def has_failed(self) -> bool:
        """Whether it should run and does not."""
        return self.state in (ProcessState.WAITING, ProcessState.DOWN)


@dataclass(frozen=True, slots=True)
class ShardStanding:
    """One shard. `report` is what its process last said, None before its first word and after its end; `reason` says
    why it is not running. `starts_in_s` is the rest of the pause of one that waits.
    """

    shard: int
    state: ProcessState
    pid: int | None = None
    restarts: int = 0
    starts_in_s: float | None = None
    exit_code: int | None = None
    reason: str = ""
    report: ShardReport | None = None

    @property
    def is_active(self) -> bool:
        """Whether it answers for all that it should know."""
        running = self.state is ProcessState.RUNNING and self.report is not None
        return running and self.report is not None and self.report.status.phase is Phase.ACTIVE

    @property
    def store_unanswered_s(self) -> float | None:
        """For how long its store has not answered, if that is too long; None if it answers, or is not known."""
        report = self.report if self.state is ProcessState.RUNNING else None
        return None if report is None or report.store.is_answering else report.store.unanswered_s

    @property
    def is_ready(self) -> bool:
        """Whether it is active, and its store answers."""
        return self.is_active and self.store_unanswered_s is None


class NodeStanding(Protocol):
    """The shards of this node, as they stand now. Any thread may ask."""

    def shards(self) -> tuple[ShardStanding, ...]:
        """In the order of their numbers."""
        ...

    def partitions(self) -> int | None:
        """How many partitions the topic has, as far as is known: the node may serve some of them only."""
        ...


class WholeStanding(NodeStanding, Protocol):
    """The same, with the processes that are no shards."""

    def processes(self) -> tuple[ProcessStanding, ...]:
        """The front and the worker."""
        ...

    def started_ms(self) -> int:
        """When the node was started."""
        ...

    def waits_for(self) -> str:
        """Why its shards are not known yet; empty once they are."""
        ...
