"""The recovery of a shard at its start: takes the shard, loads its index, and decides how to continue reading."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from strandline.errors import Fatal, StrandlineError
from strandline.index.shard_index import ShardIndex
from strandline.node.shard.index_damage import IndexRepair, RereadNeeded
from strandline.node.shard.log import OffsetGone
from strandline.node.shard.manifest_view import ManifestView
from strandline.node.shard.ownership import ensure_dataset, take_shard
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.replay_planning import plan_replay
from strandline.node.shard.replaying import Replay
from strandline.node.shard.starting import (
    AcquireProgress,
    LoadProgress,
    ReadingPlan,
    load_shard_index,
    observe_brokers_clock,
    read_manifest,
    settle_offsets,
)
from strandline.node.shard.status import Phase, Status
from strandline.recovery.offset_policy import Accepted
from strandline.store.protocol import Fenced, Store
from strandline.store.rows import Ownership

_LOG = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """A shard that was taken: its manifest, its index as of the index's checkpoint, and the plan for reading, which
    begins after the replay if there is one. `heartbeats` is the number of heartbeats written so far.
    """

    ownership: Ownership
    view: ManifestView
    index: ShardIndex
    plan: ReadingPlan
    replay: Replay | None = None
    heartbeats: int = 0


def recover(
    parts: ShardParts, status: Status, *, take: bool, accepted: Accepted, stopping: Callable[[], bool]
) -> Recovered:
    """Take a shard and recover its state. Raises the errors of `Shard.start`."""
    options = parts.options
    status.enter(Phase.ACQUIRING, parts.clock.now_ms())
    shape = ensure_dataset(parts.store, options.shape)
    parts.present.poll_store_clock()
    progress = AcquireProgress(parts, status, stopping)
    ownership = take_shard(
        parts.store,
        options.shard,
        parts.log.topic_id(),
        parts.clock,
        parts.processes,
        by_force=take,
        on_wait=progress.report,
    )
    status.reason = ""
    with released_on_failure(parts.store, ownership):
        observe_brokers_clock(parts)
        while True:
            view = read_manifest(parts.store, ownership, options.groups, parts.present.now_ms())
            parts.present.observe_manifest(view.newest_written)
            try:
                plan = settle_offsets(parts, ownership, view, partitions=shape.partitions, accepted=accepted)
                plan, replay = plan_replay(parts, ownership, view, plan, status)
            except OffsetGone as error:
                # Kafka has deleted records since the ends of the log were requested: what is left is settled anew.
                _LOG.warning("planning again", shard=str(options.shard), reason=error.message)
                continue
            status.enter(Phase.RECOVERING_INDEX, parts.clock.now_ms(), 0.0)
            loading = LoadProgress(parts, ownership, status, stopping)
            repair = IndexRepair(parts, ownership, view, accepted, loading.keep_alive)
            try:
                index = load_shard_index(parts, view, loading, repair)
            except RereadNeeded as again:
                # This ends, because the bucket is an older one each time.
                repair.rewind_to(again.bucket)
                continue
            return Recovered(ownership, view, index, plan, replay, loading.heartbeats)


@contextmanager
def released_on_failure(store: Store, ownership: Ownership) -> Iterator[None]:
    """Release the shard if an exception leaves the context, so that the next owner need not wait for the timeout.
    Raises `Fenced` instead of a fatal error if the shard has another owner by then: the error was concluded from state
    that this owner may have changed.
    """
    try:
        yield
    except Fenced:
        raise
    except BaseException as error:
        try:
            store.touch(ownership, None, 0)
        except Fenced as fenced:
            if isinstance(error, Fatal):
                raise fenced from error
        except StrandlineError as release_error:
            _LOG.warning("heartbeat write failed", error=str(release_error))
        raise
