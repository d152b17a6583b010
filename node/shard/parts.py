"""The options and dependencies of a shard."""

from collections.abc import Callable
from dataclasses import dataclass, field

from strandline.clock import Clock
from strandline.node.shard.index_storage import IndexStorage
from strandline.node.shard.log import DeadLetters, PartitionLog
from strandline.node.shard.options import ShardOptions
from strandline.node.shard.replaying import ReplayService
from strandline.node.shard.store_health import StoreHealth
from strandline.recovery.present import Present
from strandline.recovery.worker_identity import KnownProcesses, Processes
from strandline.store.protocol import Store


def _no_answers() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class StoreProgress:
    """How the progress of calls to the store is measured. `answers` counts the answers to writes, including errors.
    `silence_s` is how long the store's timeouts and retries may leave the storing thread without an answer.
    """

    answers: Callable[[], int] = _no_answers
    silence_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ShardParts:
    """The options and dependencies of one shard. Without `replays`, there are no workers, and the shard reads
    everything itself. `processes` knows which earlier owners are dead. `store_progress` is for monitoring the storing
    thread. `store_health` is whether the store answers, if that is monitored.
    """

    options: ShardOptions
    log: PartitionLog
    store: Store
    index_storage: IndexStorage
    dead_letters: DeadLetters
    clock: Clock
    present: Present
    replays: ReplayService | None = None
    processes: KnownProcesses = field(default_factory=Processes)
    store_progress: StoreProgress = StoreProgress()
    store_health: StoreHealth | None = None
