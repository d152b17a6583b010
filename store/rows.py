"""The values in the manifest and the tables that it references. Times are milliseconds since the epoch, offsets are
Kafka's.

The manifest alone determines what is stored: a segment or index bucket that no row references does not exist for
readers.
"""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a written row is kept, in milliseconds: the store counts `length` from the write by its own clock, and
    `expires` is the resulting date by the writer's present.
    """

    length: int
    expires: int

    @classmethod
    def from_present(cls, present: int, length: int) -> "Lifetime":
        """A lifetime of this length that starts now."""
        return cls(length, present + length)

    @classmethod
    def until(cls, expires: int, present: int) -> "Lifetime":
        """A lifetime up to a date. Both times must come from the same present."""
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
    """The properties of a dataset that are fixed at its creation; a start with another shape is rejected.

    `partitions` is the number at creation: a later partition is new, and is read from its beginning.
    """

    dataset: str
    flush_interval: int
    groups: int
    key_hash: str
    partitions: int


@dataclass(frozen=True, slots=True)
class ShardState:
    """The state of a shard, apart from its rows. `seen_at` is None after an owner has stopped.

    `seen_at` is the owner's clock, for display only. `beats` rises with each heartbeat, so that watchers use only their
    own clock. An owner of schema version 2 writes only `seen_at`.
    """

    epoch: int
    owner: str
    seen_at: int | None
    topic_id: str
    next_part_id: int
    beats: int = 0


@dataclass(frozen=True, slots=True)
class Ownership:
    """The right to write a shard's manifest, until another owner takes it. `owner` is random and used once."""

    shard: ShardId
    epoch: int
    owner: str


@dataclass(frozen=True, slots=True)
class RecordIdentity:
    """Identifies a record of a log: a log that was truncated and refilled has another record at the same offset.

    `leader_epoch` is None if it is unknown, and in rows of versions that did not store it. `checksum` has 63 bits.
    """

    offset: int
    time: int
    leader_epoch: int | None
    checksum: int


@dataclass(frozen=True, slots=True)
class CutRow:
    """Bucket `bucket` has the offsets `[start, end)`, the same for all groups.

    `[start, lost_to)` could not be read, and an operator accepted the loss. `reset` marks the row from which offsets
    are valid again after the topic was recreated. `last` is the last record below `end`, None if it is unknown.
    `closed_early`: records of the bucket's time may follow its end, because the end is not confirmed (see
    `recovery.end_confirmation`), or because the brokers no longer had the position of a shard that was reading.
    """

    bucket: int
    start: int
    end: int
    expires: int
    lost_to: int | None = None
    reset: bool = False
    last: RecordIdentity | None = None
    closed_early: bool = False


@dataclass(frozen=True, slots=True)
class IndexBucketRows:
    """The index bucket that a designated group's row references: the number of rows, their checksum and their attempt.
    If a replay job wrote the segments, their attempt is another one, because an index bucket is always written by the
    owner.
    """

    rows: int
    checksum: bytes
    attempt: str


@dataclass(frozen=True, slots=True)
class LateSamples:
    """The number of samples of an hour that arrived in a later bucket. `hour` counts hours since the epoch.

    If a row has too many hours, the older ones are counted together: `hours` hours, starting with `hour`.
    """

    hour: int
    samples: int
    hours: int = 1


@dataclass(frozen=True, slots=True)
class GroupRow:
    """What is stored of one group in one bucket. The row is written as a whole, after everything that it references.

    `least_time` and `greatest_time` are sample times, None if there are no samples. `checksum` covers the segments'
    bytes in order. The row is valid until `expires`, the data until `data_expires`. A superseded row counts as a hole:
    its segments are not read, and the bucket is written again after the rewind.
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
    """A shard's manifest, or the requested part of it: newest bucket first, groups in ascending order."""

    state: ShardState
    cuts: tuple[CutRow, ...]
    groups: tuple[GroupRow, ...]

    def unexpired(self, now: int) -> "ManifestRows":
        """Drop the rows that had expired at `now`: a store may keep them longer."""
        return replace(
            self,
            cuts=tuple(row for row in self.cuts if row.expires > now),
            groups=tuple(row for row in self.groups if row.expires > now),
        )


@dataclass(frozen=True, slots=True)
class ManifestWrite:
    """Rows and values that are written atomically. `next_part_id` can only rise; `topic_id` None leaves it unchanged.

    `present` is the present from which the rows' dates were computed: a row's lifetime is `expires - present`, counted
    from the write.
    """

    cuts: tuple[CutRow, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    next_part_id: int | None = None
    topic_id: str | None = None
    present: int = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SegmentsOf:
    """The address of a group's segments in a bucket, under the attempt that wrote them."""

    shard: ShardId
    bucket: int
    group: int
    attempt: str


@dataclass(frozen=True, slots=True)
class Segment:
    """One row of segments: its first series (`SeriesKey.to_bytes`), a number that distinguishes rows with the same
    first series, and the encoded segment. Rows are ordered by (first, seq).
    """

    first: bytes
    seq: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class IndexBucketOf:
    """The address of an index bucket's rows, under the attempt that wrote them."""

    shard: ShardId
    bucket: int
    attempt: str
