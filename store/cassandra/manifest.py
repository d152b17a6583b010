"""The manifest: consistent reads over any number of pages, and commits by the shard's owner only."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from cassandra.query import BoundStatement

from strandline.store.cassandra import statements
from strandline.store.cassandra.conditional import Settled, settle
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.manifest_rows import (
    CUT_GROUP,
    ClusteringKey,
    StoredRow,
    clustering_key_of,
    cut_values,
    group_values,
    state_from,
    stored_from,
)
from strandline.store.cassandra.ownership import fenced, is_held_by
from strandline.store.cassandra.requests import Answer, Requests
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ManifestWrite, Ownership, ShardId, ShardState

# Bucket numbers have 64 bits; these stand for an open end.
_FIRST_BUCKET: Final = -(2**63)
_LAST_BUCKET: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ReadManifest:
    """A shard's state and some of its rows, newest bucket first: a consistent snapshot, plus group rows that were added
    during the read.
    """

    state: ShardState
    rows: Mapping[ClusteringKey, StoredRow]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest table."""

    requests: Requests

    def read(self, shard: ShardId, *, first: int | None, last: int | None) -> ManifestRows | None:
        """Return the rows of buckets `first` to `last`; None if the shard has no state."""
        ends = (_FIRST_BUCKET if first is None else first, _LAST_BUCKET if last is None else last)
        read = self.requests.retries.run(lambda: self._read_once(shard, *ends))
        if read is None:
            return None
        rows = [stored.row for stored in read.rows.values()]
        return ManifestRows(
            state=read.state,
            cuts=tuple(row for row in rows if isinstance(row, CutRow)),
            groups=tuple(row for row in rows if isinstance(row, GroupRow)),
        )

    def commit(self, ownership: Ownership, write: ManifestWrite) -> None:
        """Write rows atomically. Raises `Fenced`."""
        what = f"commit to the manifest of shard {ownership.shard}"
        batched = self._batched_writes(ownership, write)

        def send() -> Answer:
            answer = self.requests.compare_and_set_all(what, _condition(ownership, write), batched)
            if answer.applied or not is_held_by(ownership, answer.found):
                return answer
            # The shard is still owned by this owner, so the condition failed because the next part id is higher
            # already, which is permanent.
            return self.requests.compare_and_set_all(what, _condition(ownership), batched)

        def to_result(answer: Answer) -> None:
            if not answer.applied:
                raise fenced(ownership, answer.found)

        settle(
            self.requests.retries,
            send=send,
            to_result=to_result,
            read_outcome=lambda: self._outcome_of(ownership, write),
        )

    def _batched_writes(self, ownership: Ownership, write: ManifestWrite) -> list[BoundStatement]:
        """Return the writes of a commit's batch, without the condition."""
        key, epoch, present = (ownership.shard.dataset, ownership.shard.shard), ownership.epoch, write.present
        bind = self.requests.bind
        batched = [bind(statements.WRITE_CUT, cut_values(key, epoch, row, present)) for row in write.cuts]
        batched += [bind(statements.WRITE_GROUP, group_values(key, epoch, row, present)) for row in write.groups]
        if write.topic_id is not None:
            batched.append(bind(statements.SET_TOPIC, (write.topic_id, *key)))
        return batched

    def _outcome_of(self, ownership: Ownership, write: ManifestWrite) -> Settled[None] | None:
        """Determine the result of a commit whose answer was lost; None if it was not applied and may be sent again.

        Each row has the epoch that wrote it. So the result can be determined even if the shard has been taken since,
        unless the new owner has written the same rows.
        """
        rows: list[CutRow | GroupRow] = [*write.cuts, *write.groups]
        wanted = {clustering_key_of(row): StoredRow(row, ownership.epoch) for row in rows}
        buckets = [bucket for bucket, _ in wanted]
        read = self._read_once(ownership.shard, min(buckets, default=0), max(buckets, default=0))
        if read is None:
            raise fenced(ownership, {})
        found = {key_of_row: read.rows.get(key_of_row) for key_of_row in wanted}
        if is_held_by(ownership, asdict(read.state)):
            done = found == wanted and _statics_are(read.state, write)
            return Settled(None) if done else None
        if wanted and found == wanted:
            return Settled(None)
        if not wanted or any(stored is not None and stored.epoch > ownership.epoch for stored in found.values()):
            raise StoreUnavailable(
                f"it can't be determined whether a commit to shard {ownership.shard} was applied:"
                f" {read.state.owner!r} has taken the shard since",
                remedy="Stop writing to it; a restart takes the shard again",
            )
        raise fenced(ownership, asdict(read.state))

    def _read_once(self, shard: ShardId, first: int, last: int) -> ReadManifest | None:
        """Read the rows of some buckets. Raises `Unanswered` if rows were changed during the read, unless they were
        only added.
        """
        rows = self._rows(shard, first, last)
        if not rows:
            # No row includes the state, so read it separately. Rows are only added, so none now means that there were
            # none before.
            state = self._state_row(shard)
            if state is None:
                return None
            rows = self._rows(shard, first, last)
            if not rows:
                return ReadManifest(state_from(state), {})
        if _is_changed(rows):
            raise Unanswered(f"the manifest of shard {shard} was changed during a read", remedy="Try again")
        stored = [stored_from(row) for row in rows]
        # The newest state: its next part id is above the ids in every index bucket that a row references.
        return ReadManifest(state_from(rows[-1]), {clustering_key_of(one.row): one for one in stored})

    def _rows(self, shard: ShardId, first: int, last: int) -> list[Any]:
        """Return rows, newest bucket first. Each page is of one revision."""
        values = (shard.dataset, shard.shard, first, last)
        return self.requests.read(f"read the manifest of shard {shard}", statements.MANIFEST, values)

    def _state_row(self, shard: ShardId) -> Any:
        rows = self.requests.read(f"read the state of shard {shard}", statements.STATE, (shard.dataset, shard.shard))
        return rows[0] if rows else None


def _condition(
    ownership: Ownership, write: ManifestWrite | None = None
) -> tuple[statements.Statement, tuple[object, ...]]:
    """Return the condition of a commit, which also raises the next part id if `write` does."""
    key = (ownership.shard.dataset, ownership.shard.shard)
    held = (ownership.epoch, ownership.owner)
    if write is None or write.next_part_id is None:
        return statements.COMMIT, (ownership.epoch, *key, *held)
    return statements.COMMIT_RAISING, (ownership.epoch, write.next_part_id, *key, *held, write.next_part_id)


def _statics_are(state: ShardState, write: ManifestWrite) -> bool:
    raised = write.next_part_id is None or state.next_part_id >= write.next_part_id
    return raised and write.topic_id in (None, state.topic_id)


def _is_changed(rows: Sequence[Any]) -> bool:
    """Whether rows that were read in pages are not a consistent snapshot.

    Pages run from the newest bucket to the oldest, and an owner stores each group in bucket order. So group rows added
    during the read cause no hole: every row that a group stored before a row that was read is read too. That does not
    hold for changes of existing rows: another owner or topic, a loss that is written into cuts, or a rewind. New cuts
    precede the first page, which is not read again.
    """
    first, last = rows[0], rows[-1]
    if first.revision == last.revision:
        return False
    if (first.epoch, first.owner, first.topic_id) != (last.epoch, last.owner, last.topic_id):
        return True
    since = (row for row in rows if row.row_revision > first.revision)
    return any(row.group == CUT_GROUP or row.superseded for row in since)
