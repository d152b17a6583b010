"""What landing needs of the brokers: one part's transactional producer, and the group that holds its offset."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from strandline.errors import Fatal, Retryable
from strandline.jobs.landing.progress import PartIdentity
from strandline.wire.record_headers import RecordHeaders

TRANSACTION_TIMEOUT_S: Final = 10.0
"""After so long the brokers abort a transaction whose holder is gone. Until then no reader sees what lies behind it."""


class PartFenced(Fatal):
    """The brokers have ended this hold of the part: it has a new holder, or a transaction took longer than its
    time-out. Nothing lands under this hold from now on.

    Final for this hold and for nothing else. Whoever still has the lease of the part begins it again, and finds out
    what has landed.
    """


class LandingUnknown(Retryable):
    """The brokers did not answer the commit in time, so the chunk may have landed. Beginning the part again tells."""


class OffsetUnstable(Retryable):
    """A transaction of the part was ended, but its markers are not written yet: the offset may be about to change."""


class RecordsRefused(Fatal):
    """The brokers will not have a record: it is too large for the topic, say."""


BY_KEY: Final = -1
"""The partition of a record whose key decides where it goes, as in Kafka's own Java clients (murmur2)."""


class Record(Protocol):
    """A record of a chunk."""

    @property
    def partition(self) -> int:
        """Where it goes; `BY_KEY` if its key decides."""
        ...

    @property
    def value(self) -> bytes:
        """What it holds."""
        ...

    @property
    def key(self) -> bytes | None:
        """Its key, if it has one."""
        ...

    @property
    def headers(self) -> RecordHeaders:
        """Its own headers, which come behind those of the chunk."""
        ...


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What the group of a part holds."""

    offset: int
    metadata: str


class PartTransactions(Protocol):
    """The transactions of one part at a time, used by one thread.

    Every call waits for at most `timeout` seconds. It raises `LogUnreachable` if the brokers did not answer,
    `KafkaRefused` if a right is missing, and `TopicMissing`. Calls between `begin` and the end of a transaction raise
    `PartFenced` if the brokers have ended the hold, and leave the transaction open if they raise anything else.
    """

    def hold(self, part: PartIdentity, timeout: float) -> None:
        """Become the holder of a part: every other holder of it is fenced from now on, and a transaction that one of
        them left open is aborted, or committed if its commit had begun. Gives up the part that was held before.
        """
        ...

    def committed(self, part: PartIdentity, timeout: float) -> CommittedOffset | None:
        """The offset of the part's group; None if there is none. Raises `OffsetUnstable`."""
        ...

    def partitions(self, timeout: float) -> int:
        """How many partitions the topic has, to all of which `send` can send from now on. Comes after `hold`."""
        ...

    def begin(self) -> None:
        """Begin a transaction, without a request."""
        ...

    def send(self, records: Sequence[Record], headers: RecordHeaders, timeout: float) -> None:
        """Put records into the transaction; returns when all replicas have them. Raises `RecordsRefused`."""
        ...

    def send_offset(self, offset: int, metadata: str, timeout: float) -> None:
        """Put the part's offset into the transaction."""
        ...

    def commit(self, timeout: float) -> None:
        """End the transaction: records and offset are seen together. Raises `LandingUnknown`."""
        ...

    def abort(self, timeout: float) -> None:
        """End the transaction: nothing of it is ever seen."""
        ...

    def offset_retention_ms(self, timeout: float) -> int:
        """How long the brokers keep the offset of a group after it was committed last."""
        ...

    def delete_group(self, part: PartIdentity, timeout: float) -> None:
        """Delete the part's group. Does nothing if there is none."""
        ...

    def close(self) -> None:
        """Let go of the connections. Closing twice does nothing."""
        ...
