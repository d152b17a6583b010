"""The interface for producing records, which Kafka's producer and its in-memory counterpart in tests implement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from strandline.errors import Retryable
from strandline.node.gateway.figures import ProducerCounts


@dataclass(frozen=True, slots=True)
class Record:
    """A value for one partition. The record gets the header that says that its sample times were checked."""

    partition: int
    value: bytes = field(repr=False)


class NotDelivered(Retryable):
    """Some records are not acknowledged. Other records, or even all, may be in Kafka."""


OnDone = Callable[[NotDelivered | None], None]


class RecordProducer(Protocol):
    """Produces records to a topic. Thread-safe."""

    def send(self, records: Sequence[Record], on_done: OnDone) -> None:
        """Send the records of one request, at least one. Returns without waiting, and raises nothing.

        `on_done` is called exactly once, by any thread and possibly before this returns: with None when Kafka has
        acknowledged all of the records, or else with the first error, when each of them is acknowledged or has failed.
        Until then they use memory.
        """
        ...

    def await_partitions(self, partitions: int) -> None:
        """Wait until the client knows this number of partitions, so that records can be sent to each. Raises
        `NotDelivered` if the brokers don't report them in time.
        """
        ...

    def renew(self) -> None:
        """Replace the client, because the topic was deleted and created again. Unacknowledged records fail."""
        ...

    def counts(self) -> ProducerCounts:
        """The current counts."""
        ...

    def close(self, timeout: float) -> None:
        """Wait up to `timeout` seconds until all records are acknowledged, then fail the others. No records are
        accepted afterwards.
        """
        ...
