"""Who owns a shard: one at a time, by compare-and-sets on the static columns of its manifest."""

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

    A compare-and-set here that was not answered is repeated as it is. That is as good as a serial read: it completes
    what is under way before it looks, and if it is not applied then it says what it found.
    """

    requests: Requests

    def state(self, shard: ShardId) -> ShardState | None:
        """Who owns a shard; None for one that nobody has ever taken."""
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
            # What stands against this one may be an earlier try of its own. The epoch could be another's, the name not.
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
    """Whether the epoch and owner that were found are these."""
    return (found.get("epoch"), found.get("owner")) == (ownership.epoch, ownership.owner)


def fenced(ownership: Ownership, found: Mapping[str, Any]) -> Fenced:
    """The error for an owner that is none any more, with whom was found in its place."""
    owner, epoch = found.get("owner"), found.get("epoch")
    now = "nobody has ever taken it" if epoch is None else f"{owner!r} has it in epoch {epoch}"
    return Fenced(
        f"{ownership.owner!r} of epoch {ownership.epoch} may not write shard {ownership.shard}: {now}",
        remedy="Stop writing it; a start takes the shard again",
    )
