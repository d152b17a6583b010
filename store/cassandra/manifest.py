"""The manifest: rows that are read as of one moment, and committed by the shard's owner alone."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from cassandra.query import BoundStatement

from strandline.clock import Clock
from strandline.store.cassandra import statements
from strandline.store.cassandra.conditional import Settled, settle
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.manifest_rows import (
    Place,
    StoredRow,
    cut_values,
    group_values,
    place_of,
    state_from,
    stored_from,
)
from strandline.store.cassandra.ownership import fenced, is_held_by
from strandline.store.cassandra.requests import Answer, Requests
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ManifestWrite, Ownership, ShardId, ShardState

# Buckets are numbers of 64 bits; these stand for an open end.
_FIRST_BUCKET: Final = -(2**63)
_LAST_BUCKET: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Seen:
    """A shard's state and some of its rows, newest bucket first, as they were at one moment; expired ones too."""

    state: ShardState
    rows: Mapping[Place, StoredRow]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The table of manifests."""

    requests: Requests
    clock: Clock

    def read(self, shard: ShardId, *, first: int | None, last: int | None) -> ManifestRows | None:
        """The unexpired rows of buckets from `first` to `last`; None without a state."""
        ends = (_FIRST_BUCKET if first is None else first, _LAST_BUCKET if last is None else last)
        seen = self.requests.retries.run(lambda: self._look(shard, *ends))
        if seen is None:
            return None
        now = self.clock.now_ms()
        rows = [stored.row for stored in seen.rows.values() if stored.row.expires > now]
        return ManifestRows(
            state=seen.state,
            cuts=tuple(row for row in rows if isinstance(row, CutRow)),
            groups=tuple(row for row in rows if isinstance(row, GroupRow)),
        )

    def commit(self, ownership: Ownership, write: ManifestWrite) -> None:
        """Write rows, all or none. Raises `Fenced`."""
        what = f"commit to the manifest of shard {ownership.shard}"
        beside = self._beside(ownership, write)

        def send() -> Answer:
            answer = self.requests.compare_and_set_all(what, _condition(ownership, write), beside)
            if answer.applied or not is_held_by(ownership, answer.found):
                return answer
            # The shard is ours, so it is the next part id that stood against it: it is higher already, and stays so.
            return self.requests.compare_and_set_all(what, _condition(ownership), beside)

        def answered(answer: Answer) -> None:
            if not answer.applied:
                raise fenced(ownership, answer.found)

        settle(self.requests.retries, send=send, answered=answered, look=lambda: self._came_of(ownership, write))

    def _beside(self, ownership: Ownership, write: ManifestWrite) -> list[BoundStatement]:
        """What is written beside the condition."""
        key, now = (ownership.shard.dataset, ownership.shard.shard), self.clock.now_ms()
        bind = self.requests.bind
        beside = [bind(statements.WRITE_CUT, cut_values(key, ownership.epoch, row, now)) for row in write.cuts]
        beside += [bind(statements.WRITE_GROUP, group_values(key, ownership.epoch, row, now)) for row in write.groups]
        if write.topic_id is not None:
            beside.append(bind(statements.SET_TOPIC, (write.topic_id, *key)))
        return beside

    def _came_of(self, ownership: Ownership, write: ManifestWrite) -> Settled[None] | None:
        """What came of a commit whose answer was missed; None if nothing, so that it may be sent again.

        Each row names the epoch that wrote it. So it is known whether this commit was applied even if the shard has
        been taken since, unless the new owner has written to the very same places.
        """
        rows: list[CutRow | GroupRow] = [*write.cuts, *write.groups]
        wanted = {place_of(row): StoredRow(row, ownership.epoch) for row in rows}
        buckets = [bucket for bucket, _ in wanted]
        seen = self._look(ownership.shard, min(buckets, default=0), max(buckets, default=0))
        if seen is None:
            raise fenced(ownership, {})
        now = self.clock.now_ms()
        lasting = {place: stored for place, stored in wanted.items() if stored.row.expires > now}
        found = {place: seen.rows.get(place) for place in lasting}
        if is_held_by(ownership, asdict(seen.state)):
            done = found == lasting and _statics_are(seen.state, write)
            return Settled(None) if done else None
        if lasting and found == lasting:
            return Settled(None)
        if not lasting or any(stored is not None and stored.epoch > ownership.epoch for stored in found.values()):
            raise StoreUnavailable(
                f"nobody can tell any more whether a commit to shard {ownership.shard} was applied:"
                f" {seen.state.owner!r} has taken it since",
                remedy="Stop writing it; a start takes the shard again",
            )
        raise fenced(ownership, asdict(seen.state))

    def _look(self, shard: ShardId, first: int, last: int) -> Seen | None:
        """What stands in some buckets. Raises `Unanswered` if it changed while it was read."""
        rows, revisions = self._rows(shard, first, last)
        if rows:
            state = rows[-1]
        else:
            # There is no row to bring the state along. It belongs to this if nothing was written around its reading.
            state = self._state_row(shard)
            if state is None:
                return None
            rows, revisions = self._rows(shard, first, last)
            revisions |= {state.revision, self._state_row(shard).revision}
        if len(revisions) != 1:
            raise Unanswered(f"the manifest of shard {shard} was written while it was read", remedy="Try again")
        stored = [stored_from(row) for row in rows]
        return Seen(state_from(state), {place_of(one.row): one for one in stored})

    def _rows(self, shard: ShardId, first: int, last: int) -> tuple[list[Any], set[int]]:
        """Rows, and which revisions of the manifest they are of: each page is of one."""
        rows: list[Any] = []
        revisions: set[int] = set()
        values = (shard.dataset, shard.shard, first, last)
        for page in self.requests.pages(f"read the manifest of shard {shard}", statements.MANIFEST, values):
            rows += page
            revisions.update(row.revision for row in page[:1])
        return rows, revisions

    def _state_row(self, shard: ShardId) -> Any:
        rows = self.requests.read(f"read the state of shard {shard}", statements.STATE, (shard.dataset, shard.shard))
        return rows[0] if rows else None


def _condition(
    ownership: Ownership, write: ManifestWrite | None = None
) -> tuple[statements.Statement, tuple[object, ...]]:
    """The condition of a commit, which also raises the next part id if `write` does."""
    key = (ownership.shard.dataset, ownership.shard.shard)
    held = (ownership.epoch, ownership.owner)
    if write is None or write.next_part_id is None:
        return statements.COMMIT, (ownership.epoch, *key, *held)
    return statements.COMMIT_RAISING, (ownership.epoch, write.next_part_id, *key, *held, write.next_part_id)


def _statics_are(state: ShardState, write: ManifestWrite) -> bool:
    raised = write.next_part_id is None or state.next_part_id >= write.next_part_id
    return raised and write.topic_id in (None, state.topic_id)
