"""What a verification tells: findings, notes and counts, as values, and where they are gathered."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final


class FindingKind(StrEnum):
    """What is wrong, as a name that programs may rely on."""

    # The manifest.
    CUTS_TORN = "cuts-torn"
    ROW_MISPLACED = "row-misplaced"
    ROW_BEHIND_HOLE = "row-behind-hole"
    ROW_EXPIRY = "row-expiry"
    INDEX_MISPLACED = "index-misplaced"
    NEXT_PART_ID = "next-part-id"
    # Segments.
    SEGMENT_MISSING = "segment-missing"
    SEGMENT_DAMAGED = "segment-damaged"
    SEGMENT_ORDER = "segment-order"
    SEGMENT_CHECKSUM = "segment-checksum"
    SEGMENT_SUMS = "segment-sums"
    LATE_SAMPLES = "late-samples"
    WRONG_GROUP = "wrong-group"
    # Index buckets.
    INDEX_DAMAGED = "index-damaged"
    KEY_MALFORMED = "key-malformed"
    KEY_HASH = "key-hash"
    RECORD_ORDER = "record-order"
    RECORD_TIMES = "record-times"
    ID_WITH_TWO_KEYS = "id-with-two-keys"
    KEY_WITH_TWO_IDS = "key-with-two-ids"
    # Bitmaps.
    ACTIVE_UNKNOWN = "active-unknown"
    ACTIVE_WITHOUT_SAMPLES = "active-without-samples"
    SAMPLES_NOT_ACTIVE = "samples-not-active"
    ACTIVE_TIMES = "active-times"
    # Lucene.
    LUCENE_DIFFERS = "lucene-differs"
    COPY_DIFFERS = "copy-differs"


class NoteKind(StrEnum):
    """What is no fault and worth telling."""

    NEVER_READ = "never-read"
    SUPERSEDED = "superseded"
    LOSS_ACCEPTED = "loss-accepted"
    INDEX_LOSS_ACCEPTED = "index-loss-accepted"
    SERIES_WITHOUT_KEY = "series-without-key"
    REFUSED_SERIES = "refused-series"
    ACTIVE_EXPIRED = "active-expired"
    NOT_COMPARED = "not-compared"
    COPY_UNUSED = "copy-unused"
    COPY_NOT_CHECKED = "copy-not-checked"


_RESTORE: Final = "Restore the manifest from a copy: Strandline itself neither removes nor changes such rows"
_REWIND: Final = "Have the bucket read again by `strandline offsets rewind` while Kafka still has its records"
_REPORT: Final = "Report this as a bug, with the versions of Strandline that have written to the store"

REMEDIES: Final[Mapping[FindingKind, str]] = {
    FindingKind.CUTS_TORN: _RESTORE,
    FindingKind.ROW_MISPLACED: _RESTORE,
    FindingKind.ROW_BEHIND_HOLE: _REWIND,
    FindingKind.ROW_EXPIRY: "Report this as a bug: a start after the younger row has gone will replay from there",
    FindingKind.INDEX_MISPLACED: _RESTORE,
    FindingKind.NEXT_PART_ID: (
        "Stop the shard before it gives an id twice, and raise next_part_id above all ids by a conditional write"
    ),
    FindingKind.SEGMENT_MISSING: _REWIND,
    FindingKind.SEGMENT_DAMAGED: _REWIND,
    FindingKind.SEGMENT_ORDER: _REPORT,
    FindingKind.SEGMENT_CHECKSUM: _REWIND,
    FindingKind.SEGMENT_SUMS: _REWIND,
    FindingKind.LATE_SAMPLES: _REWIND,
    FindingKind.WRONG_GROUP: _REPORT,
    FindingKind.INDEX_DAMAGED: (
        "Repair the table, if another replica still has it, or restore it from a backup. Without that a start reads the"
        " records again, if Kafka has them, or wants --accept-index-loss"
    ),
    FindingKind.KEY_MALFORMED: _REPORT,
    FindingKind.KEY_HASH: _REPORT,
    FindingKind.RECORD_ORDER: _REPORT,
    FindingKind.RECORD_TIMES: _REPORT,
    FindingKind.ID_WITH_TWO_KEYS: _REPORT,
    FindingKind.KEY_WITH_TWO_IDS: _REPORT,
    FindingKind.ACTIVE_UNKNOWN: (
        "If the shard was down for longer than dataset.margin allows for, records of its keys have expired: a rewind"
        " then brings them back as new keys; otherwise report this as a bug"
    ),
    FindingKind.ACTIVE_WITHOUT_SAMPLES: (
        "Unless shard.series_limit or a limit on sample times was changed while the bucket was being stored, samples"
        " are lost: have it read again by `strandline offsets rewind` while Kafka still has its records"
    ),
    FindingKind.SAMPLES_NOT_ACTIVE: _REWIND,
    FindingKind.ACTIVE_TIMES: _REWIND,
    FindingKind.LUCENE_DIFFERS: "Report this as a bug: what is stored is sound, and the index that a start makes of it is not",
    FindingKind.COPY_DIFFERS: "Stop the shard and remove the copy's folder: the next start loads the index from the store",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: where, in words with names and numbers, and what to do about it."""

    kind: FindingKind
    bucket: int | None
    group: int | None
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that is as it may be, and that an operator may want to know."""

    kind: NoteKind
    bucket: int | None
    group: int | None
    what: str


@dataclass(slots=True)
class Counts:
    """How much was looked at. Keys are those that the index buckets name; series are counted once a bucket."""

    buckets: int = 0
    groups: int = 0
    segments: int = 0
    bytes: int = 0
    series: int = 0
    samples: int = 0
    index_buckets: int = 0
    index_bytes: int = 0
    keys: int = 0
    documents: int = 0


@dataclass(slots=True)
class Findings:
    """Where findings and notes are gathered, in the order in which they are met."""

    found: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def add(self, kind: FindingKind, what: str, *, bucket: int | None = None, group: int | None = None) -> None:
        """Something is wrong."""
        self.found.append(Finding(kind, bucket, group, what, REMEDIES[kind]))

    def explain(self, kind: FindingKind, bucket: int, more: str) -> None:
        """Say more about what was found wrong with a bucket."""
        self.found = [
            replace(one, what=f"{one.what}. {more}") if (one.kind, one.bucket) == (kind, bucket) else one
            for one in self.found
        ]

    def note(self, kind: NoteKind, what: str, *, bucket: int | None = None, group: int | None = None) -> None:
        """Something is worth telling."""
        self.notes.append(Note(kind, bucket, group, what))


def with_first(what: str, number: int, first: object) -> str:
    """Things that are all wrong in one way: how many, and which is the first."""
    return f"{what}: {number:,}, the first is {first}"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """A number with its noun: `1 row`, `1,200 rows`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
