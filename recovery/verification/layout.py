"""The shard to verify and the rules by which it is stored."""

from dataclasses import dataclass

from strandline.index.policy import BucketPolicy
from strandline.recovery.checkpoints import designated_group
from strandline.store.rows import ShardId


@dataclass(frozen=True, slots=True)
class ShardLayout:
    """A shard, its number of groups, and the current periods of the dataset."""

    shard: ShardId
    groups: int
    policy: BucketPolicy

    @property
    def designated(self) -> int:
        """The group whose rows reference the index buckets."""
        return designated_group(self.shard, self.groups)
