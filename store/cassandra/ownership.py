"""Ownership of shards: one owner at a time, by compare-and-sets on the static columns of the manifest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.store.cassandra import statements
from strandline.store.cassandra.manifest_rows import NO_HEARTBEAT, state_from
from strandline.store.cassandra.requests import Requests
from strandline.store.protocol import Fenced
from strandline.store.rows import Ownership, ShardId, ShardState


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of shards.

    A compare-and-set without an answer is repeated unchanged here. That is equivalent to a serial read: it completes a
    pending write before it compares, and if it is not applied it returns what it found.
    """

    requests: Requests

    def state(self, shard: ShardId) -> ShardState | None:
        """Return a shard's state; None if the shard never had an owner."""
        rows = self.requests.read(f"read the state of shard {shard}", statements.STATE, (shard.dataset, shard.shard))
        return state_from(rows[0]) if rows else None

    def take(
        self, shard: ShardId, owner: str, after: ShardState | None, *, now: int, topic_id: str
    ) -> Ownership | None:
        """Make `owner` the owner, if epoch and owner are still those of `after`."""
        wanted = Ownership(shard, 1 if after is None else after.epoch + 1, owner)
        values: tuple[object, ...]
        if after is None:
            statement = statements.TAKE_FIRST
            values = (wanted.epoch, owner, now, topic_id, shard.dataset, shard.shard)
        else:
            statement = statements.TAKE
            values = (wanted.epoch, owner, now, shard.dataset, shard.shard, after.epoch, after.owner)

        def attempt() -> Ownership | None:
            answer = self.requests.compare_and_set(f"take shard {shard}", statement, values)
            # The found owner may be an earlier attempt of this call. Another owner could have the same epoch, but not
            # the same name.
            return wanted if answer.applied or is_held_by(wanted, answer.found) else None

        return self.requests.retries.run(attempt)

    def touch(self, ownership: Ownership, seen_at: int | None, beats: int) -> None:
        """Write a heartbeat. Raises `Fenced`."""
        shard, seen = ownership.shard, NO_HEARTBEAT if seen_at is None else seen_at
        values = (seen, beats, shard.dataset, shard.shard, ownership.epoch, ownership.owner)

        def attempt() -> None:
            answer = self.requests.compare_and_set(f"touch shard {shard}", statements.TOUCH, values)
            if not answer.applied:
                raise fenced(ownership, answer.found)

        self.requests.retries.run(attempt)


def is_held_by(ownership: Ownership, found: Mapping[str, Any]) -> bool:
    """Whether the found epoch and owner are those of `ownership`."""
    return (found.get("epoch"), found.get("owner")) == (ownership.epoch, ownership.owner)


def fenced(ownership: Ownership, found: Mapping[str, Any]) -> Fenced:
    """Make the error for a former owner, with the present one."""
    owner, epoch = found.get("owner"), found.get("epoch")
    now = "the shard has no owner" if epoch is None else f"{owner!r} owns it in epoch {epoch}"
    return Fenced(
        f"{ownership.owner!r} of epoch {ownership.epoch} may not write shard {ownership.shard}: {now}",
        remedy="Stop writing to it; a restart takes the shard again",
    )
