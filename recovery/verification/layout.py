"""Which shard is verified, and by which rules it is stored."""

from dataclasses import dataclass

from strandline.index.policy import BucketPolicy
from strandline.recovery.checkpoints import designated_group
from strandline.store.rows import ShardId


@dataclass(frozen=True, slots=True)
class ShardLayout:
    """A shard, in how many groups its buckets are stored, and the lengths of time that count today."""

    shard: ShardId
    groups: int
    policy: BucketPolicy

    @property
    def designated(self) -> int:
        """The group whose rows name the index buckets."""
        return designated_group(self.shard, self.groups)
