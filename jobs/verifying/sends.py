"""Verifies a send: compares the number of its messages in the topic by part. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.jobs.outcome import PartOutcome
from strandline.store.bulk_jobs import BulkPart


@dataclass(frozen=True, slots=True)
class PartMessages:
    """A part with another number of messages in the topic than it has sent."""

    part: int
    sent: int
    found: int


@dataclass(frozen=True, slots=True)
class SendVerified:
    """The numbers of messages sent by the parts that are done, and found in the topic."""

    parts: int
    sent: int
    found: int
    wrong: tuple[PartMessages, ...]


def verify_messages(parts: Sequence[BulkPart], found: Mapping[int, int]) -> SendVerified:
    """Compare the parts that are done with the numbers of messages found, by part."""
    done = [part for part in parts if part.outcome]
    counted = [(part.part, PartOutcome.from_json(part.outcome).counts.sent, found.get(part.part, 0)) for part in done]
    wrong = tuple(PartMessages(*one) for one in counted if one[1] != one[2])
    return SendVerified(len(done), sum(one[1] for one in counted), sum(one[2] for one in counted), wrong)
