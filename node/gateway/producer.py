"""Where records go: the contract that Kafka's producer and its twin in the tests both keep."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from strandline.errors import Retryable
from strandline.node.gateway.figures import ProducerCounts


@dataclass(frozen=True, slots=True)
class Record:
    """A value for one partition. The times of its samples were checked, and the record says so."""

    partition: int
    value: bytes = field(repr=False)


class NotDelivered(Retryable):
    """Of some records it is not known that Kafka has them. Others, or even all, may be there."""


OnDone = Callable[[NotDelivered | None], None]


class RecordProducer(Protocol):
    """Puts records into a topic. Any thread may call it."""

    def send(self, records: Sequence[Record], on_done: OnDone) -> None:
        """Hand over the records of one request, at least one, each for its partition; returns without waiting.

        `on_done` is called exactly once, by any thread and perhaps before this returns: with None when Kafka has every
        one of them for good; else with the first error, when each of them is there or has been given up. Until then
        they take up memory. Nothing is raised.
        """
        ...

    def await_partitions(self, partitions: int) -> None:
        """The topic has so many partitions now. Returns once records for each may be sent. Raises `NotDelivered` if
        the brokers don't tell in time.
        """
        ...

    def renew(self) -> None:
        """Begin afresh with another client, because the topic is another one. Records under way are given up."""
        ...

    def counts(self) -> ProducerCounts:
        """As of now."""
        ...

    def close(self, timeout: float) -> None:
        """Wait for so many seconds until all is delivered, then give up the rest. Afterwards nothing is taken."""
        ...
