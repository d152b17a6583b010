"""The part log: lands the chunks of a part in a topic, each exactly once.

A chunk lands in one transaction, which contains its records and the offset of a consumer group that belongs to the
part: the number of chunks landed, with the part's progress as metadata. Both become visible, or neither. `begin` first
fences the former holder, and only then reads the offset: in the opposite order, the former holder could land a chunk in
between. The samples of a chunk must depend on the source and the spec alone, because the next holder continues after
the last chunk that has landed.

An open transaction blocks every reader of the topic. The caller therefore packs a chunk and waits for its rate before
`land`, which waits for nothing but the brokers.
"""

from collections.abc import Sequence
from contextlib import suppress

from strandline.clock import Clock
from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.jobs.landing.progress import Landed, PartIdentity, Progress, decode_progress, encode_progress
from strandline.jobs.landing.transactions import (
    TRANSACTION_TIMEOUT_S,
    CommittedOffset,
    LandingUnknown,
    OffsetUnstable,
    PartFenced,
    PartTransactions,
    Record,
)
from strandline.wire.record_headers import CHECKED_HEADERS, CHUNK_HEADER, JOB_HEADER, PART_HEADER, RecordHeaders

_ADMIN_S = 30.0
_ABORT_S = 2.0
_UNSTABLE_POLL_S = 0.005
_DAY_MS = 24 * 3_600_000


class DeadlinePassed(Retryable):
    """The caller's deadline for using Kafka has passed. Nothing of the chunk has landed."""


class OffsetExpired(Fatal):
    """The offset that says how much of a part has landed may have expired: landing it again could duplicate samples."""


class PartLog:
    """Lands one part at a time, for one thread. Deadlines are on the monotonic clock."""

    def __init__(self, transactions: PartTransactions, clock: Clock, headers: RecordHeaders = CHECKED_HEADERS) -> None:
        """`headers` are added to every record, in addition to those of the job, the part and the chunk."""
        self._transactions, self._clock, self._headers = transactions, clock, headers
        self._held: PartIdentity | None = None
        self._chunks = 0

    @property
    def held(self) -> PartIdentity | None:
        """The part of the last `begin`; None if there is none, or if `begin` must be called again."""
        return self._held

    def begin(self, part: PartIdentity, *, first_begun_ms: int | None, deadline: float) -> Landed:
        """Become the part's holder, and return what has landed.

        `first_begun_ms` is a wall time before the first attempt at the part; None if there was none. Raises
        `OffsetExpired` if the part has no offset and one may have expired, `OffsetUnstable` if its offset did not
        become stable before the deadline, and `ProgressUnreadable`.
        """
        self._held = None
        self._transactions.hold(part, self._timeout(deadline))
        committed = self._stable_offset(part, deadline)
        if committed is None:
            self._require_remembered(part, first_begun_ms, deadline)
            landed = Landed()
        else:
            landed = decode_progress(part, committed.offset, committed.metadata)
        self._held, self._chunks = part, landed.chunks
        return landed

    def partitions(self, deadline: float) -> int:
        """The current number of partitions, to be read before each chunk is packed. Requires `begin`."""
        return self._transactions.partitions(self._timeout(deadline))

    def land(self, chunk: int, records: Sequence[Record], progress: Progress, deadline: float) -> None:
        """Land the next chunk, counted from 0; `progress` is the one after it. A chunk may have no records.

        After any error, `begin` must be called again, unless `held` is still the part: then nothing was sent. After
        `LandingUnknown`, and possibly after `PartFenced`, the chunk may have landed; after any other error it has not.
        """
        part = self._require_held(chunk)
        metadata = encode_progress(Landed(chunk + 1, progress))
        self._timeout(deadline)
        # Later, the brokers would abort the transaction and fence this producer.
        until = min(deadline, self._clock.monotonic() + TRANSACTION_TIMEOUT_S)
        headers: RecordHeaders = [
            *self._headers,
            (JOB_HEADER, part.job.encode()),
            (PART_HEADER, b"%d" % part.part),
            (CHUNK_HEADER, b"%d" % chunk),
        ]
        # Unset until the result is known, in case an exception leaves it unknown what has landed.
        self._held = None
        self._transactions.begin()
        try:
            if records:
                self._transactions.send(records, headers, self._timeout(until))
            self._transactions.send_offset(chunk + 1, metadata, self._timeout(until))
            self._transactions.commit(self._timeout(until))
        except (PartFenced, LandingUnknown):
            raise
        except StrandlineError:
            # So that readers are not blocked until the timeout. Harmless after the deadline, because the brokers reject
            # it if the part has another holder. The caller gets the cause even if the abort fails.
            with suppress(StrandlineError):
                self._transactions.abort(_ABORT_S)
            raise
        self._held, self._chunks = part, chunk + 1

    def offset_retention_ms(self) -> int:
        """How long the brokers keep the offset of a part. A job must expire well before."""
        return self._transactions.offset_retention_ms(_ADMIN_S)

    def delete_group(self, part: PartIdentity) -> None:
        """Delete the consumer group of a part whose job has ended. If started again, the part would land again."""
        self._transactions.delete_group(part, _ADMIN_S)

    def close(self) -> None:
        """Close the connections. May be called twice."""
        self._held = None
        self._transactions.close()

    def _stable_offset(self, part: PartIdentity, deadline: float) -> CommittedOffset | None:
        while True:
            try:
                return self._transactions.committed(part, self._timeout(deadline))
            except OffsetUnstable:
                if self._clock.monotonic() + _UNSTABLE_POLL_S >= deadline:
                    raise
                self._clock.sleep(_UNSTABLE_POLL_S)

    def _require_remembered(self, part: PartIdentity, first_begun_ms: int | None, deadline: float) -> None:
        """Raises `OffsetExpired` if an offset committed after the first attempt may have expired."""
        if first_begun_ms is None:
            return
        retention = self._transactions.offset_retention_ms(self._timeout(deadline))
        # A day of tolerance for wrong clocks, or half of a retention shorter than two days.
        safe_age = retention - min(_DAY_MS, retention // 2)
        age = self._clock.now_ms() - first_begun_ms
        if age > safe_age:
            raise OffsetExpired(
                f"{part} was first begun {age / _DAY_MS:.1f} days ago, and brokers forget offsets after "
                f"{retention / _DAY_MS:.1f} days (offsets.retention.minutes): what has landed of it is not known",
                remedy="Compare the source with what is stored, and import what is missing with a new job",
            )

    def _require_held(self, chunk: int) -> PartIdentity:
        if self._held is None:
            raise RuntimeError("`begin` must be called before a chunk lands, and again after a failure")
        if chunk != self._chunks:
            raise ValueError(f"chunk {chunk} of {self._held} can't land: {self._chunks} is the next one")
        return self._held

    def _timeout(self, deadline: float) -> float:
        """The timeout of the next request."""
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise DeadlinePassed(
                f"the deadline has passed, or a transaction took longer than {TRANSACTION_TIMEOUT_S:g} s",
                remedy="Begin the part again under a lease that is renewed in time",
            )
        return min(left, TRANSACTION_TIMEOUT_S)
