"""Taking a shard: who may, and how."""

import secrets
from enum import StrEnum

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal, Retryable
from strandline.store.protocol import Store
from strandline.store.rows import DatasetShape, Ownership, ShardId, ShardState

# An owner says every 10 s that it lives. One that has not for so long is gone, as far as each kind of taker may think.
GONE_AFTER_FENCED_MS = 60_000
GONE_AFTER_TOOL_MS = 30_000
_TRIES = 5


class Taker(StrEnum):
    """On whose behalf a shard is taken."""

    NODE = "node"
    FENCED_PROCESS = "fenced process"
    TOOL = "tool"


class StillOwned(Fatal):
    """The shard's owner lives."""

    exit_code = ExitCode.FENCED


class TakeFailed(Retryable):
    """Others kept taking the shard at the same time."""


class AnotherShape(Fatal):
    """The dataset was made with other settings, which can't be changed."""


def check_may_take(shard: ShardId, state: ShardState | None, taker: Taker, now: int) -> None:
    """Raise `StillOwned` unless this taker may take the shard now. A node that starts always may."""
    if taker is Taker.NODE or state is None or state.seen_at is None:
        return
    gone_after = GONE_AFTER_FENCED_MS if taker is Taker.FENCED_PROCESS else GONE_AFTER_TOOL_MS
    if now - state.seen_at < gone_after:
        raise StillOwned(
            f"shard {shard} has an owner ({state.owner}) that was seen {max(0, now - state.seen_at) / 1000:.0f} s ago",
            remedy="Stop that node first, or take the shard by force if it can't be stopped",
        )


def take_shard(store: Store, shard: ShardId, taker: Taker, topic_id: str, clock: Clock) -> Ownership:
    """Become the owner of a shard. Whoever was is fenced from now on."""
    for _ in range(_TRIES):
        state = store.state(shard)
        check_may_take(shard, state, taker, clock.now_ms())
        # Random, so that a read after a take that timed out can't mistake another's for ours.
        owner = secrets.token_hex(16)
        ownership = store.take(shard, owner, state, now=clock.now_ms(), topic_id=topic_id)
        if ownership is not None:
            return ownership
    raise TakeFailed(f"shard {shard} was taken by others {_TRIES} times in a row", remedy="See who else starts it")


def agree_on_shape(store: Store, wanted: DatasetShape) -> DatasetShape:
    """Make the dataset, or find it with the same flush interval, number of groups and key hash."""
    stored = store.create_dataset(wanted)
    for name, setting in (
        ("flush_interval", "dataset.flush_interval"),
        ("groups", "dataset.groups"),
        ("key_hash", "the key hash"),
    ):
        was, is_now = getattr(stored, name), getattr(wanted, name)
        if was != is_now:
            unit = " ms" if name == "flush_interval" else ""
            raise AnotherShape(
                f"dataset {wanted.dataset!r} was made with {setting} = {was}{unit}, and now it is {is_now}{unit}",
                remedy=f"Set {setting} back, or use another dataset: what is stored depends on it",
            )
    return stored
