"""How the shards of a node stand: their processes, and what each of them last said."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Phase


class ProcessState(StrEnum):
    """The state of a shard's process. WAITING will be started again after a pause; DOWN will not without a person."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    DOWN = "down"
    STOPPED = "stopped"


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


class NodeStanding(Protocol):
    """The shards of this node, as they stand now. Any thread may ask."""

    def shards(self) -> tuple[ShardStanding, ...]:
        """In the order of their numbers."""
        ...
