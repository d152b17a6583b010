"""The counts of a part, and the progress of a job. The totals of a job are sums over its parts, so that a retry is not
counted twice.
"""

import json
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import orjson

from strandline.store.bulk_jobs import BulkPart
from strandline.store.jobs import JobState

# A running part never counts as completely done.
_MAX_PARTIAL = 0.99


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of an attempt at a part, or of several parts.

    `records` are the records read from the source, including bad ones. `samples` and `sent` are what landed: samples,
    and Kafka records with their `bytes`. `bad` are records that can't be used, and `refused` samples that Kafka
    rejected.
    """

    records: int = 0
    samples: int = 0
    bad: int = 0
    sent: int = 0
    bytes: int = 0
    refused: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(operator.add, self.as_numbers(), other.as_numbers()))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*map(operator.sub, self.as_numbers(), other.as_numbers()))

    @classmethod
    def total(cls, some: Iterable["Counts"]) -> "Counts":
        """The sum."""
        return sum(some, cls())

    def as_numbers(self) -> tuple[int, ...]:
        """All counts in the order of the fields, as stored in the metadata of a part's offset."""
        return self.records, self.samples, self.bad, self.sent, self.bytes, self.refused


@dataclass(frozen=True, slots=True)
class AttemptCounts:
    """The counts of an attempt at a part so far: `total` includes what had landed before, `fresh` is the attempt alone.
    The circuit breaker uses `fresh`, so that failures before a resume do not break the job again.

    `fenced` is the epoch up to which the part's leases have been fenced since then; 0 if none has.
    """

    total: Counts = field(default_factory=Counts)
    fresh: Counts = field(default_factory=Counts)
    fenced: int = 0

    def to_json(self) -> str:
        """The text for the part's row."""
        fenced = [self.fenced] if self.fenced else []
        return json.dumps([self.total.as_numbers(), self.fresh.as_numbers(), *fenced], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "AttemptCounts":
        """Parse the result of `to_json`; an empty text has no counts."""
        if not text:
            return cls()
        total, fresh, *fenced = json.loads(text)
        return cls(Counts(*total), Counts(*fresh), *fenced)


def landed_of(part: BulkPart) -> Counts:
    """What has landed of a part: its outcome if it is done, else the counts of its last attempt. Only builds the counts
    of an outcome, because jobs may have many parts.
    """
    if part.outcome:
        return Counts(**orjson.loads(part.outcome)["counts"])
    return AttemptCounts.from_json(part.counts).total


def progress_of(states: Sequence[JobState], landed: Sequence[Counts], parts: int) -> float:
    """The share of a job that is done, from 0 to 1. A part that is not done counts by its number of records, relative
    to the mean of the finished parts; it counts as 0 before the first part is done.
    """
    done = [counts.records for state, counts in zip(states, landed, strict=True) if state is JobState.DONE]
    mean = sum(done) / len(done) if done else 0.0
    partial = sum(
        min(_MAX_PARTIAL, counts.records / mean)
        for state, counts in zip(states, landed, strict=True)
        if mean and state is not JobState.DONE
    )
    return min(1.0, (len(done) + partial) / max(1, parts))
