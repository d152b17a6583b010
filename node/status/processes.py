"""The status of each process of a node, as the supervisor publishes it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase

FRONT, WORKER = "front", "worker"
"""The names of the processes other than shards."""


class ProcessState(StrEnum):
    """The state of a process. WAITING: restarted after a pause. DOWN: not restarted until an operator does it. STOPPED:
    not needed, because the node stops or there is no job for the worker.
    """

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    DOWN = "down"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The front or the worker. `process` is None before its first report and after its end. `reason` is the reason why
    it is not running, `starts_in_s` the time until a WAITING process is restarted.
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
class ShardProcessStatus:
    """A shard's process. `report` is its last report, None before the first one and after its end. `reason` is why it
    is not running, `starts_in_s` the time until a process in WAITING is restarted.
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
        """Whether the shard answers queries in full."""
        running = self.state is ProcessState.RUNNING and self.report is not None
        return running and self.report is not None and self.report.status.phase is Phase.ACTIVE

    @property
    def store_unanswered_s(self) -> float | None:
        """For how long its store has been unreachable; None while it answers or nothing is known."""
        report = self.report if self.state is ProcessState.RUNNING else None
        return None if report is None or report.store.is_answering else report.store.unanswered_s

    @property
    def is_ready(self) -> bool:
        """Whether it is active, and its store answers."""
        return self.is_active and self.store_unanswered_s is None


class NodeShards(Protocol):
    """The current status of the node's shards. Thread-safe."""

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        """In the order of their numbers."""
        ...

    def partitions(self) -> int | None:
        """How many partitions the topic has, None if unknown. The node may serve only some of them."""
        ...


class NodeStatus(NodeShards, Protocol):
    """The same, with the other processes."""

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The front and the worker."""
        ...

    def started_ms(self) -> int:
        """When the node was started."""
        ...

    def waits_for(self) -> str:
        """Why its shards are not known yet; empty once they are."""
        ...
