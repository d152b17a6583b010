"""The results of a verification: findings, notes and counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final


class FindingKind(StrEnum):
    """The kind of a fault, a stable name for programs."""

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
    """The kind of a difference that is not a fault."""

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


_RESTORE: Final = "Restore the manifest from a backup. Strandline itself does not remove or change such rows"
_REWIND: Final = "Read the bucket again with `strandline offsets rewind` while Kafka still has its records"
_REPORT: Final = "Report this as a bug, with the versions of Strandline that have written to the store"

REMEDIES: Final[Mapping[FindingKind, str]] = {
    FindingKind.CUTS_TORN: _RESTORE,
    FindingKind.ROW_MISPLACED: _RESTORE,
    FindingKind.ROW_BEHIND_HOLE: _REWIND,
    FindingKind.ROW_EXPIRY: "Report this as a bug: a start after the newer row has expired will replay from there",
    FindingKind.INDEX_MISPLACED: _RESTORE,
    FindingKind.NEXT_PART_ID: (
        "Stop the shard before it assigns an id twice, and raise next_part_id above all ids with a conditional write"
    ),
    FindingKind.SEGMENT_MISSING: _REWIND,
    FindingKind.SEGMENT_DAMAGED: _REWIND,
    FindingKind.SEGMENT_ORDER: _REPORT,
    FindingKind.SEGMENT_CHECKSUM: _REWIND,
    FindingKind.SEGMENT_SUMS: _REWIND,
    FindingKind.LATE_SAMPLES: _REWIND,
    FindingKind.WRONG_GROUP: _REPORT,
    FindingKind.INDEX_DAMAGED: (
        "Repair the table if another replica has the rows, or restore it from a backup. Otherwise a start reads the"
        " records again if Kafka has them, or needs --accept-index-loss"
    ),
    FindingKind.KEY_MALFORMED: _REPORT,
    FindingKind.KEY_HASH: _REPORT,
    FindingKind.RECORD_ORDER: _REPORT,
    FindingKind.RECORD_TIMES: _REPORT,
    FindingKind.ID_WITH_TWO_KEYS: _REPORT,
    FindingKind.KEY_WITH_TWO_IDS: _REPORT,
    FindingKind.ACTIVE_UNKNOWN: (
        "If the shard was down for longer than dataset.margin, records of its keys have expired: a rewind then adds"
        " them as new keys. Otherwise report this as a bug"
    ),
    FindingKind.ACTIVE_WITHOUT_SAMPLES: (
        "Unless shard.series_limit or a limit on sample times was changed while the bucket was being stored, samples"
        " are lost: read it again with `strandline offsets rewind` while Kafka still has its records"
    ),
    FindingKind.SAMPLES_NOT_ACTIVE: _REWIND,
    FindingKind.ACTIVE_TIMES: _REWIND,
    FindingKind.LUCENE_DIFFERS: (
        "Report this as a bug: the stored data is consistent, but the index that a start makes of it is not"
    ),
    FindingKind.COPY_DIFFERS: (
        "Stop the shard and remove the copy's folder: the next start loads the index from the store"
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: where it is, a description with names and numbers, and a remedy."""

    kind: FindingKind
    bucket: int | None
    group: int | None
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Note:
    """One difference that is not a fault, but that an operator may want to know."""

    kind: NoteKind
    bucket: int | None
    group: int | None
    what: str


@dataclass(slots=True)
class Counts:
    """How much was checked. Keys are those in the index buckets; a series counts once per bucket."""

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
    """Collects findings and notes, in the order in which they are found."""

    found: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def add(self, kind: FindingKind, what: str, *, bucket: int | None = None, group: int | None = None) -> None:
        """Add a fault."""
        self.found.append(Finding(kind, bucket, group, what, REMEDIES[kind]))

    def explain(self, kind: FindingKind, bucket: int, more: str) -> None:
        """Add details to a bucket's findings of a kind."""
        self.found = [
            replace(one, what=f"{one.what}. {more}") if (one.kind, one.bucket) == (kind, bucket) else one
            for one in self.found
        ]

    def note(self, kind: NoteKind, what: str, *, bucket: int | None = None, group: int | None = None) -> None:
        """Add a note."""
        self.notes.append(Note(kind, bucket, group, what))


def with_first(what: str, number: int, first: object) -> str:
    """How many things share a fault, and the first of them."""
    return f"{what}: {number:,}, the first is {first}"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """A number with its noun: `1 row`, `1,200 rows`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"
