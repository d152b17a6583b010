"""The counts of a part. The totals of a job are sums over its parts, so that a retry is not counted twice."""

import json
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field


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
