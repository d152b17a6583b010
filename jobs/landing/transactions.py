"""What landing needs from Kafka: the transactional producer of a part, and the consumer group with its offset."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from strandline.errors import Fatal, Retryable
from strandline.jobs.landing.progress import PartIdentity
from strandline.wire.record_headers import RecordHeaders

TRANSACTION_TIMEOUT_S: Final = 10.0
"""The brokers abort a transaction that has been open for this long. Until then, no reader sees records after it."""


class PartFenced(Fatal):
    """The brokers have fenced this producer: the part has a new holder, or a transaction took longer than its timeout.
    Nothing more of it lands.

    Final only for this producer. A worker that still has the lease of the part calls `begin` again, which finds what
    has landed.
    """


class LandingUnknown(Retryable):
    """The brokers did not answer the commit in time, so the chunk may have landed. The next `begin` finds out."""


class OffsetUnstable(Retryable):
    """A transaction of the part has ended, but its markers are not written yet, so the offset may still change."""


class RecordsRefused(Fatal):
    """The brokers have rejected a record, for example because it is too large for the topic."""


BY_KEY: Final = -1
"""The partition of a record that is partitioned by its key, as by Kafka's Java clients (murmur2)."""


class Record(Protocol):
    """A record of a chunk."""

    @property
    def partition(self) -> int:
        """The target partition, or `BY_KEY`."""
        ...

    @property
    def value(self) -> bytes:
        """Its content."""
        ...

    @property
    def key(self) -> bytes | None:
        """Its key, if it has one."""
        ...

    @property
    def headers(self) -> RecordHeaders:
        """Its own headers, which follow those of the chunk."""
        ...


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The offset of a part's consumer group."""

    offset: int
    metadata: str


class PartTransactions(Protocol):
    """The transactions of one part at a time. For one thread.

    Every call waits for at most `timeout` seconds. It raises `LogUnreachable` if the brokers did not answer,
    `KafkaRefused` if a permission is missing, and `TopicMissing`. Calls between `begin` and the end of a transaction
    raise `PartFenced` if the producer is fenced, and leave the transaction open if they raise anything else.
    """

    def hold(self, part: PartIdentity, timeout: float) -> None:
        """Become the holder of a part. This fences every other holder, and aborts its open transaction, or commits it
        if its commit had begun. Releases the part that was held before.
        """
        ...

    def committed(self, part: PartIdentity, timeout: float) -> CommittedOffset | None:
        """The offset of the part's group, or None. Raises `OffsetUnstable`."""
        ...

    def partitions(self, timeout: float) -> int:
        """The number of partitions of the topic, all of which `send` can use afterwards. Requires `hold`."""
        ...

    def begin(self) -> None:
        """Begin a transaction, without a request."""
        ...

    def send(self, records: Sequence[Record], headers: RecordHeaders, timeout: float) -> None:
        """Add records to the transaction; returns when all in-sync replicas have them. Raises `RecordsRefused`."""
        ...

    def send_offset(self, offset: int, metadata: str, timeout: float) -> None:
        """Add the part's offset to the transaction."""
        ...

    def commit(self, timeout: float) -> None:
        """Commit the transaction: records and offset become visible together. Raises `LandingUnknown`."""
        ...

    def abort(self, timeout: float) -> None:
        """Abort the transaction: nothing of it becomes visible."""
        ...

    def offset_retention_ms(self, timeout: float) -> int:
        """How long the brokers keep the offset of a group after its last commit."""
        ...

    def delete_group(self, part: PartIdentity, timeout: float) -> None:
        """Delete the part's group, if it exists."""
        ...

    def close(self) -> None:
        """Close the connections. May be called twice."""
        ...
