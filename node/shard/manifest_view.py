"""The manifest as its owner knows it: read once at the start, and updated with each commit of the owner."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import I64s
from strandline.recovery.checkpoints import Progress, progress
from strandline.store.rows import CutRow, GroupRow, ManifestRows, ManifestWrite, ShardId, ShardState


@dataclass(frozen=True, slots=True)
class _SampleTimes:
    """The rows that have samples, oldest bucket first, with their time ranges as columns: a month has tens of thousands
    of rows, and every query checks all of them.
    """

    rows: Sequence[GroupRow]
    least: I64s
    greatest: I64s
    data_expires: I64s

    @classmethod
    def of(cls, rows: Iterable[GroupRow]) -> "_SampleTimes":
        found = [
            (row, row.least_time, row.greatest_time)
            for row in sorted(rows, key=lambda row: (row.bucket, row.group))
            if not row.superseded and row.least_time is not None and row.greatest_time is not None
        ]
        return cls(
            [row for row, _, _ in found],
            np.array([least for _, least, _ in found], dtype=np.int64),
            np.array([greatest for _, _, greatest in found], dtype=np.int64),
            np.array([row.data_expires for row, _, _ in found], dtype=np.int64),
        )

    def overlapping(self, first_time: int, last_time: int, now: int) -> list[GroupRow]:
        overlaps = (self.least <= last_time) & (self.greatest >= first_time) & (self.data_expires > now)
        return [self.rows[index] for index in np.flatnonzero(overlaps).tolist()]


class ManifestView:
    """Rows by bucket and group. The owner's storing thread updates it; any thread may read."""

    def __init__(self, shard: ShardId, groups: int, rows: ManifestRows) -> None:
        self._shard, self._groups = shard, groups
        self._lock = threading.Lock()
        self._state: ShardState = rows.state
        self._cuts = {row.bucket: row for row in rows.cuts}
        self._rows = {(row.bucket, row.group): row for row in rows.groups}
        self._progress: Progress | None = None
        self._sample_times: _SampleTimes | None = None
        self._changes = 0
        self._latest_expiry = _latest_expiry(rows.cuts, rows.groups)

    @property
    def topic_id(self) -> str:
        """The id of the topic to which the offsets belong."""
        return self._state.topic_id

    @property
    def next_part_id(self) -> int:
        """The next part id as of the newest index bucket when the manifest was read."""
        return self._state.next_part_id

    @property
    def newest_written(self) -> int:
        """When the newest row was written, by the present of its owner; 0 without rows."""
        with self._lock:
            return max((row.written_at for row in self._rows.values()), default=0)

    @property
    def row_count(self) -> int:
        """The number of cut rows and group rows."""
        return len(self._cuts) + len(self._rows)

    def cut(self, bucket: int) -> CutRow | None:
        """The committed cut of a bucket; None if there is none."""
        with self._lock:
            return self._cuts.get(bucket)

    def committed(self, write: ManifestWrite) -> None:
        """Apply a commit."""
        with self._lock:
            self._cuts.update({row.bucket: row for row in write.cuts})
            self._rows.update({(row.bucket, row.group): row for row in write.groups})
            if write.topic_id is not None:
                self._state = replace(self._state, topic_id=write.topic_id)
            self._changed()
            self._latest_expiry = max(self._latest_expiry, _latest_expiry(write.cuts, write.groups))

    def row_expiry(self, wanted: int) -> int:
        """The expiry of a row that is written now: `wanted`, but not before that of any existing row.

        Otherwise, after the lifetime of rows was shortened, a newer row would expire first and leave a hole after
        older ones.
        """
        return max(wanted, self._latest_expiry)

    def expire(self, now: int) -> None:
        """Remove the rows that have expired."""
        with self._lock:
            self._cuts = {bucket: row for bucket, row in self._cuts.items() if row.expires > now}
            self._rows = {key: row for key, row in self._rows.items() if row.expires > now}
            self._changed()

    def rows(self) -> ManifestRows:
        """All current rows."""
        with self._lock:
            cuts: Sequence[CutRow] = sorted(self._cuts.values(), key=lambda row: -row.bucket)
            groups: Sequence[GroupRow] = sorted(self._rows.values(), key=lambda row: (-row.bucket, row.group))
            return ManifestRows(self._state, tuple(cuts), tuple(groups))

    def progress(self) -> Progress | None:
        """The checkpoints of the shard; None if it was never read."""
        with self._lock:
            known, changes = self._progress, self._changes
        if known is None:
            known = progress(self.rows(), self._groups, self._shard)
            with self._lock:
                # A commit in the meantime may be missing in it: then it is returned, but not kept.
                if self._changes == changes:
                    self._progress = known
        return known

    @property
    def lowest_checkpoint(self) -> int:
        """The lowest offset that is not stored; -1 if the shard was never read."""
        done = self.progress()
        return done.lowest if done is not None else -1

    def overlapping(self, first_time: int, last_time: int, now: int) -> list[GroupRow]:
        """The rows with unexpired data and samples in a range of sample times, both included; oldest bucket first."""
        with self._lock:
            known = self._sample_times
            if known is None:
                known = self._sample_times = _SampleTimes.of(self._rows.values())
        return known.overlapping(first_time, last_time, now)

    def _changed(self) -> None:
        self._progress = self._sample_times = None
        self._changes += 1


def _latest_expiry(cuts: Sequence[CutRow], groups: Sequence[GroupRow]) -> int:
    return max([0, *(row.expires for row in cuts), *(row.expires for row in groups)])
