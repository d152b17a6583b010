"""What a shard works with: its options and the world around it, each behind its protocol."""

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
    """How to tell that calls to the store get on. `answers` rises with each answer to a write, bad ones included;
    `silence_s` is for how long the store's own time-outs and retries may leave the storing thread without one.
    """

    answers: Callable[[], int] = _no_answers
    silence_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ShardParts:
    """One shard's options, its log, its store, where its documents live, where bad records go, this machine's clocks,
    the present that they and others agree on, and who has workers for replays; None if nobody has, and then the shard
    reads everything itself. `processes` tells which owners of before are known to be dead. `store_progress` is for
    whoever watches the storing thread, and `store_health` says whether the store answers, if that is watched.
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
