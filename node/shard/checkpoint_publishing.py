"""Publishes a shard's lowest checkpoint, for Kafka's lag tools and in the shard's status."""

from strandline.node.shard.manifest_view import ManifestView
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.status import Status
from strandline.recovery.cutting import Cutting
from strandline.recovery.job_order import JobOrder


class CheckpointPublisher:
    """Publishes one shard's lowest checkpoint each time it has moved."""

    def __init__(self, parts: ShardParts, view: ManifestView, status: Status) -> None:
        options = parts.options
        self._parts, self._view, self._status = parts, view, status
        self._job_order = JobOrder(Cutting(options.policy.flush_interval, options.grace), options.kafka_retention)
        self._mirrored = -1

    def publish(self) -> None:
        """Publish the checkpoint if it has changed."""
        done = self._view.progress()
        if done is None:
            return
        self._status.time_left = self._job_order.time_left(min(done.stored_up_to) + 1, self._parts.clock.now_ms())
        if done.lowest != self._mirrored:
            self._mirrored = done.lowest
            self._parts.log.mirror(done.lowest)
