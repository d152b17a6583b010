"""What the manifest and its neighbours hold, as values. Times are milliseconds since the epoch, offsets are Kafka's.

The manifest is the only truth about what is stored: a segment or an index bucket that no row names does not exist.
"""

from dataclasses import dataclass, field


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
    """What is known of a shard beside its rows. `seen_at` is None once an owner has left."""

    epoch: int
    owner: str
    seen_at: int | None
    topic_id: str
    next_part_id: int


@dataclass(frozen=True, slots=True)
class Ownership:
    """The right to write a shard's manifest, for as long as nobody takes it. `owner` is random, and used once."""

    shard: ShardId
    epoch: int
    owner: str


@dataclass(frozen=True, slots=True)
class CutRow:
    """Bucket `bucket` is the offsets from `start` up to, not including, `end`; the same for all groups.

    `[start, lost_to)` could not be read any more and a person accepted that. `reset` marks the row from which on
    offsets count again, after a topic was made anew.
    """

    bucket: int
    start: int
    end: int
    expires: int
    lost_to: int | None = None
    reset: bool = False


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
    """How many samples of an hour came in a bucket behind it. `hour` counts hours since the epoch."""

    hour: int
    samples: int


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


@dataclass(frozen=True, slots=True)
class ManifestWrite:
    """Rows and values that are written together or not at all. `next_part_id` only rises, `topic_id` None keeps it."""

    cuts: tuple[CutRow, ...] = ()
    groups: tuple[GroupRow, ...] = ()
    next_part_id: int | None = None
    topic_id: str | None = None


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
