"""The expected state of a shard, by plain loops over the records of the log and the committed cuts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from strandline.index.policy import BucketPolicy
from strandline.store.rows import CutRow, GroupRow, ManifestWrite
from support.seeded.ledger import Ledger, LogRecord, Name
from support.seeded.violations import Violation


@dataclass
class Key:
    """A key; `end` is None while it is live."""

    start: int
    last: int
    end: int | None
    active_in: int


@dataclass
class _Loss:
    """Offsets `[first, behind)` were accepted as lost, except for the groups in `kept`, which were already stored."""

    first: int
    behind: int
    kept: frozenset[int]


@dataclass
class Model:
    """Follows the commits."""

    ledger: Ledger
    policy: BucketPolicy
    groups: int
    designated: int
    group_of: Callable[[str], int]
    true_ms: Callable[[], int]
    cuts: dict[int, CutRow] = field(default_factory=dict)
    rows: dict[tuple[int, int], GroupRow] = field(default_factory=dict)
    was_rewound: bool = False
    _losses: list[_Loss] = field(default_factory=list)

    def committed(self, write: ManifestWrite) -> None:
        """Apply a commit. Raises `Violation` if its rows can't be right."""
        for cut in sorted(write.cuts, key=lambda row: row.bucket):
            self._cut(cut)
        for row in write.groups:
            before = self.rows.get((row.bucket, row.group))
            self.rows[row.bucket, row.group] = row
            if row.superseded:
                self.was_rewound = True
                continue
            if before is not None and not before.superseded and before.checksum != row.checksum:
                raise Violation(f"group {row.group} of bucket {row.bucket} was stored twice, and differs")
            self._check_row(row)

    def _cut(self, cut: CutRow) -> None:
        before = self.cuts.get(cut.bucket)
        if before is not None and (before.start, before.end) != (cut.start, cut.end):
            raise Violation(f"the cut of bucket {cut.bucket} moved from {before} to {cut}")
        if before is None and self.cuts:
            newest = self.cuts[max(self.cuts)]
            if cut.bucket != newest.bucket + 1 or cut.start != newest.end:
                raise Violation(f"bucket {cut.bucket} [{cut.start}, {cut.end}) does not join {newest}")
            if cut.lost_to is None and self.true_ms() < self.policy.end_of(cut.bucket):
                early = self.policy.end_of(cut.bucket) - self.true_ms()
                raise Violation(f"bucket {cut.bucket} was closed {early} ms early")
        if cut.lost_to is not None and (before is None or before.lost_to is None or before.lost_to < cut.lost_to):
            kept = frozenset(group for group in range(self.groups) if self.is_stored(cut.bucket, group))
            self._losses.append(_Loss(cut.start, cut.lost_to, kept))
        self.cuts[cut.bucket] = cut

    def _check_row(self, row: GroupRow) -> None:
        cut = self.cuts.get(row.bucket)
        if cut is None:
            raise Violation(f"group {row.group} of bucket {row.bucket} is stored, and the bucket has no cut")
        held = {
            (sample.name, sample.time)
            for record in self.readable(cut.start, cut.end, row.group)
            for sample in self.ledger.taken(record)
            if self.group_of(sample.name[0]) == row.group
        }
        if row.samples != len(held):
            raise Violation(
                f"group {row.group} of bucket {row.bucket} is stored with {row.samples} samples, and its records have"
                f" {len(held)}"
            )
        oldest = row.bucket - 1
        if not self.is_stored(oldest, row.group) and oldest in self.cuts and not self.cuts[oldest].reset:
            raise Violation(f"group {row.group} of bucket {row.bucket} is stored before that of bucket {oldest}")

    def is_stored(self, bucket: int, group: int) -> bool:
        """Whether the manifest has a row of a group in a bucket."""
        row = self.rows.get((bucket, group))
        return row is not None and not row.superseded

    @property
    def knows_keys(self) -> bool:
        """Whether `keys` is exact. After a rewind, a loss removes samples, but not all of their keys: superseded index
        buckets still have those.
        """
        return not (self.was_rewound and self._losses)

    def readable(self, start: int, end: int, group: int) -> Iterator[LogRecord]:
        """The visible records of a range, without those that a group has lost."""
        for record in self.ledger.records:
            if start <= record.offset < end and not self.is_lost(record.offset, group):
                yield record

    def is_lost(self, offset: int, group: int) -> bool:
        """Whether the loss of this offset was accepted for a group."""
        return any(one.first <= offset < one.behind and group not in one.kept for one in self._losses)

    def keys(self, position: int) -> dict[Name, Key]:
        """The keys once all records below a position are processed. The oldest buckets may have expired meanwhile, but
        their keys are still in the index, so this follows all buckets.
        """
        keys: dict[Name, Key] = {}
        newest = None
        for bucket in sorted(self.cuts):
            cut = self.cuts[bucket]
            self._count(keys, bucket, cut.start, cut.end)
            if not cut.reset:
                self._close(keys, bucket)
            newest = cut
        if newest is not None:
            self._count(keys, newest.bucket + 1, newest.end, position)
        return keys

    def _count(self, keys: dict[Name, Key], bucket: int, start: int, end: int) -> None:
        for record in self.readable(start, end, self.designated):
            for sample in self.ledger.taken(record):
                key = keys.setdefault(sample.name, Key(sample.time, sample.time, None, bucket))
                key.start, key.last = min(key.start, sample.time), max(key.last, sample.time)
                key.end, key.active_in = None, bucket

    def _close(self, keys: dict[Name, Key], bucket: int) -> None:
        for name, key in list(keys.items()):
            if key.end is None and key.active_in <= bucket - self.policy.live_buckets:
                key.end = key.last
            if key.end is not None and key.end < self.policy.purge_before(bucket):
                del keys[name]
