"""Verifying a job that sent series: its messages are counted in the topic, by part. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.jobs.outcome import PartOutcome
from strandline.store.bulk_jobs import BulkPart


@dataclass(frozen=True, slots=True)
class PartMessages:
    """A part whose messages are not those that it has sent."""

    part: int
    sent: int
    found: int


@dataclass(frozen=True, slots=True)
class SendVerified:
    """How many messages parts that are done have sent, and how many there are in the topic."""

    parts: int
    sent: int
    found: int
    wrong: tuple[PartMessages, ...]


def verify_messages(parts: Sequence[BulkPart], found: Mapping[int, int]) -> SendVerified:
    """Compare parts that are done with the number of messages that were found of each."""
    done = [part for part in parts if part.outcome]
    counted = [(part.part, PartOutcome.from_json(part.outcome).counts.sent, found.get(part.part, 0)) for part in done]
    wrong = tuple(PartMessages(*one) for one in counted if one[1] != one[2])
    return SendVerified(len(done), sum(one[1] for one in counted), sum(one[2] for one in counted), wrong)
