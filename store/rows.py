"""What the manifest and its neighbours hold, as values. Times are milliseconds since the epoch, offsets are Kafka's.

The manifest is the only truth about what is stored: a segment or an index bucket that no row names does not exist.
"""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long what is written lives, in milliseconds: `length` counts from the write, by the store's own clock, and
    `expires` is the date that follows from it by the writer's present.
    """

    length: int
    expires: int

    @classmethod
    def from_present(cls, present: int, length: int) -> "Lifetime":
        """A life of this length that begins now."""
        return cls(length, present + length)

    @classmethod
    def until(cls, expires: int, present: int) -> "Lifetime":
        """A life up to a date. Both times must come from the same present."""
        return cls(expires - present, expires)


@dataclass(frozen=True, slots=True, order=True)
class ShardId:
    """A partition of a dataset's topic."""

    dataset: str
    shard: int

    def __str__(self) -> str:
        return f"{self.dataset}/{self.shard}"


@dataclass(frozen=True, slots=True)
class DatasetShape:
    """What belongs to a dataset from its making on; a start with another shape is refused.

    `partitions` is how many partitions there were then: a later one is new, and is read from its beginning.
    """

    dataset: str
    flush_interval: int
    groups: int
    key_hash: str
    partitions: int


@dataclass(frozen=True, slots=True)
class ShardState:
    """What is known of a shard beside its rows. `seen_at` is None once an owner has left.

    `seen_at` is by the owner's clock, for people. `beats` rises with each heartbeat of an owner, so that a watcher
    needs no clock but its own. An owner of schema version 2 writes `seen_at` alone.
    """

    epoch: int
    owner: str
    seen_at: int | None
    topic_id: str
    next_part_id: int
    beats: int = 0


@dataclass(frozen=True, slots=True)
class Ownership:
    """The right to write a shard's manifest, for as long as nobody takes it. `owner` is random, and used once."""

    shard: ShardId
    epoch: int
    owner: str


@dataclass(frozen=True, slots=True)
class RecordMark:
    """What identifies a record of a log: a log that was cut short and refilled has another one at the same offset.

    `leader_epoch` is None where it is not known, and in rows of versions that did not keep it. `checksum` fits into 63
    bits.
    """

    offset: int
    time: int
    leader_epoch: int | None
    checksum: int


@dataclass(frozen=True, slots=True)
class CutRow:
    """Bucket `bucket` is the offsets from `start` up to, not including, `end`; the same for all groups.

    `[start, lost_to)` could not be read any more and a person accepted that. `reset` marks the row from which on
    offsets count again, after a topic was made anew. `last` is the last record below `end`, None where it is not known.
    `closed_early`: the log lost the position of a shard that was reading, so the bucket ends before its time was over.
    """

    bucket: int
    start: int
    end: int
    expires: int
    lost_to: int | None = None
    reset: bool = False
    last: RecordMark | None = None
    closed_early: bool = False


@dataclass(frozen=True, slots=True)
class IndexBucketRows:
    """The index bucket that a designated group's row names: how many rows, their checksum, and the attempt that wrote
    them. That is another one than the segments' where a replay job wrote those: the index bucket is always its owner's.
    """

    rows: int
    checksum: bytes
    attempt: str


@dataclass(frozen=True, slots=True)
class LateSamples:
    """How many samples of an hour came in a bucket behind it. `hour` counts hours since the epoch.

    Where a row has too many hours, the older ones are counted together: `hours` of them, from `hour` on.
    """

    hour: int
    samples: int
    hours: int = 1


@dataclass(frozen=True, slots=True)
class GroupRow:
    """What is stored of one group in one bucket; always written whole, after all that it names.

    `least_time` and `greatest_time` are sample times, None where there is no sample. `checksum` is over the segments'
    bytes in order. The row itself tells of the data until `expires`; the data is there until `data_expires`. A
    superseded row is a hole: its segments are not read, and a rewind will write it again.
    """

    bucket: int
    group: int
    attempt: str
    segments: int
    series: int
    samples: int
    least_time: int | None
    greatest_time: int | None
    checksum: bytes
    codec_version: int
    expires: int
    data_expires: int
    written_by: str
    written_at: int
    late: tuple[LateSamples, ...] = ()
    superseded: bool = False
    index: IndexBucketRows | None = None


@dataclass(frozen=True, slots=True)
class ManifestRows:
    """A shard's manifest, or the part of it that was asked for: newest bucket first, groups rising within it."""

    state: ShardState
    cuts: tuple[CutRow, ...]
    groups: tuple[GroupRow, ...]

    def unexpired(self, now: int) -> "ManifestRows":
        """Without the rows that have expired by this time: a store may keep them for longer."""
        return replace(
            self,
            cuts=tuple(row for row in self.cuts if row.expires > now),
            groups=tuple(row for row in self.groups if row.expires > now),
        )


@dataclass(frozen=True, slots=True)
class ManifestWrite:
    """Rows and values that are written together or not at all. `next_part_id` only rises, `topic_id` None keeps it.

    `present` is the reading of the present that the rows' dates were made from: a row lives for `expires - present`
    from its write on, whenever that is.
    """

    cuts: tuple[CutRow, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    next_part_id: int | None = None
    topic_id: str | None = None
    present: int = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SegmentsOf:
    """Where the segments of a group in a bucket lie, under the attempt that wrote them."""

    shard: ShardId
    bucket: int
    group: int
    attempt: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One row of segments: the first series in it (`SeriesKey.to_bytes`), a number that sets rows apart which begin
    with the same series, and the encoded segment. Rows stand in the order of (first, seq).
    """

    first: bytes
    seq: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class IndexBucketOf:
    """Where the rows of an index bucket lie, under the attempt that wrote them."""

    shard: ShardId
    bucket: int
    attempt: str
