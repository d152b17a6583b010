"""The processes of a simulation, and which other processes of their host they know to be dead."""

from dataclasses import dataclass, field

from strandline.node.shard.memory_log import MemoryLog
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Status
from support.seeded.clocks import TrueTime
from support.seeded.hooked_store import HookedStore


class Process:
    """One process of a host, which knows which others of its host are dead. `died` has the true time of each death."""

    def __init__(self, host: str, number: int, died: dict[str, int], time: TrueTime) -> None:
        self.host, self._name, self._died, self._time = host, f"{host}/boot/namespace/{number}/0", died, time

    def kill(self) -> None:
        self._died.setdefault(self._name, self._time.now_ms)

    def this_worker(self) -> str:
        return self._name

    def is_gone(self, worker: str) -> bool:
        return worker.startswith(f"{self.host}/") and worker in self._died

    def is_alive(self, worker: str) -> bool:
        return worker.startswith(f"{self.host}/") and worker not in self._died


@dataclass(eq=False)
class ShardProcess:
    """A process that runs or starts the shard. `is_busy` while one of its calls is on the stack."""

    process: Process
    store: HookedStore
    log: MemoryLog
    parts: ShardParts
    reads_tail: bool
    status: Status = field(default_factory=Status)
    shard: Shard | None = None
    is_busy: bool = False


class NoReplayService:
    """A `ReplayService` whose workers are run by the simulation."""

    def ensure_worker(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""
