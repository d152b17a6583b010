"""What a shard works with: its options and the world around it, each behind its protocol."""

from dataclasses import dataclass

from strandline.clock import Clock
from strandline.node.shard.documents_home import DocumentsHome
from strandline.node.shard.log import DeadLetters, PartitionLog
from strandline.node.shard.options import ShardOptions
from strandline.node.shard.replaying import ReplayService
from strandline.store.protocol import Store


@dataclass(frozen=True, slots=True)
class ShardParts:
    """One shard's options, its log, its store, where its documents live, where bad records go, the time, and who has
    workers for replays; None if nobody has, and then the shard reads everything itself.
    """

    options: ShardOptions
    log: PartitionLog
    store: Store
    home: DocumentsHome
    dead_letters: DeadLetters
    clock: Clock
    replays: ReplayService | None = None
