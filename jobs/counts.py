"""What a part has done, as numbers. Totals of a job are sums over its parts, so that a retry is never counted twice."""

import json
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one attempt at a part, or of several parts together.

    `records` counts what was read of the source, bad records included, `samples` and `sent` what landed: samples, and
    records in Kafka with so many `bytes`. `bad` counts records that can't be used, `refused` samples that Kafka did not
    take.
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
        """All of them together."""
        return sum(some, cls())

    def as_numbers(self) -> tuple[int, ...]:
        """All counts, in the order of the fields: how they travel with a commit to Kafka."""
        return self.records, self.samples, self.bad, self.sent, self.bytes, self.refused


@dataclass(frozen=True, slots=True)
class AttemptCounts:
    """What an attempt at a part has counted so far: in all, with what had landed before, and by itself. Only the latter
    counts for the circuit breaker: what failed before a job was resumed must not break it again.

    `fenced` is the epoch up to which the part's leases were fenced since then; 0 if none was.
    """

    total: Counts = field(default_factory=Counts)
    fresh: Counts = field(default_factory=Counts)
    fenced: int = 0

    def to_json(self) -> str:
        """As it stands in a part's row."""
        fenced = [self.fenced] if self.fenced else []
        return json.dumps([self.total.as_numbers(), self.fresh.as_numbers(), *fenced], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "AttemptCounts":
        """What `to_json` wrote; that of nothing for an empty text."""
        if not text:
            return cls()
        total, fresh, *fenced = json.loads(text)
        return cls(Counts(*total), Counts(*fresh), *fenced)
