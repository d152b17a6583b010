"""The part log: chunk after chunk of a part lands in a topic, each exactly once.

A chunk lands in one transaction, which holds its records and the offset of a consumer group that belongs to the part:
the number of chunks landed, with the part's progress as metadata. Either both are seen or neither. Whoever begins a
part first fences the former holder, and only then reads the offset: in the other order the former holder could land a
chunk in between. Which samples a chunk has must follow from the source and the spec alone, since the next holder goes
on behind the last chunk that landed.

An open transaction holds back every reader of the topic. So a chunk is packed and its rate is kept before it is handed
over; nothing in here waits for anything but the brokers' answers.
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
    """The time that the caller may use Kafka is over. Nothing of the chunk has landed."""


class OffsetExpired(Fatal):
    """The brokers may have forgotten how much of a part has landed: sending it again could double its samples."""


class PartLog:
    """Lands one part at a time, for one thread. Deadlines are on the monotonic clock."""

    def __init__(self, transactions: PartTransactions, clock: Clock, headers: RecordHeaders = CHECKED_HEADERS) -> None:
        """`headers` go with every record, beside those that name the job, the part and the chunk."""
        self._transactions, self._clock, self._headers = transactions, clock, headers
        self._held: PartIdentity | None = None
        self._chunks = 0

    @property
    def held(self) -> PartIdentity | None:
        """The part that was begun; None if there is none, or if it has to be begun again."""
        return self._held

    def begin(self, part: PartIdentity, *, first_begun_ms: int | None, deadline: float) -> Landed:
        """Become the part's holder, and find what has landed.

        `first_begun_ms` is the wall time of a moment before the part was begun for the first time; None if it never
        was. Raises `OffsetExpired` if the brokers hold no offset of the part and may have forgotten one,
        `OffsetUnstable` if its offset was not stable before the deadline, and `ProgressUnreadable`.
        """
        self._held = None
        self._transactions.hold(part, self._left(deadline))
        committed = self._stable_offset(part, deadline)
        if committed is None:
            self._require_remembered(part, first_begun_ms, deadline)
            landed = Landed()
        else:
            landed = decode_progress(part, committed.offset, committed.metadata)
        self._held, self._chunks = part, landed.chunks
        return landed

    def partitions(self, deadline: float) -> int:
        """How many partitions the topic has now: ask before a chunk is packed. The part has to be begun."""
        return self._transactions.partitions(self._left(deadline))

    def land(self, chunk: int, records: Sequence[Record], progress: Progress, deadline: float) -> None:
        """Land the next chunk, the first of which is 0; `progress` is that behind it. A chunk may have no records.

        Whatever this raises, the part has to be begun again, unless `held` still names it: then nothing was sent. After
        `LandingUnknown`, and perhaps after `PartFenced`, the chunk may have landed; after any other error it has not.
        """
        part = self._require_held(chunk)
        metadata = encode_progress(Landed(chunk + 1, progress))
        self._left(deadline)
        # Behind that the brokers would abort it, and end the hold.
        until = min(deadline, self._clock.monotonic() + TRANSACTION_TIMEOUT_S)
        headers: RecordHeaders = [
            *self._headers,
            (JOB_HEADER, part.job.encode()),
            (PART_HEADER, b"%d" % part.part),
            (CHUNK_HEADER, b"%d" % chunk),
        ]
        # Until the end is known, this object doesn't know what has landed: a crash of the caller's between two steps
        # included.
        self._held = None
        self._transactions.begin()
        try:
            if records:
                self._transactions.send(records, headers, self._left(until))
            self._transactions.send_offset(chunk + 1, metadata, self._left(until))
            self._transactions.commit(self._left(until))
        except (PartFenced, LandingUnknown):
            raise
        except StrandlineError:
            # So that readers are not held back until the time-out. Past the deadline it does no harm: the brokers
            # refuse it if the part has another holder by now. Whether it works or not, the caller gets the cause.
            with suppress(StrandlineError):
                self._transactions.abort(_ABORT_S)
            raise
        self._held, self._chunks = part, chunk + 1

    def offset_retention_ms(self) -> int:
        """How long the brokers keep the offset of a part: a job has to expire well before that."""
        return self._transactions.offset_retention_ms(_ADMIN_S)

    def delete_group(self, part: PartIdentity) -> None:
        """Let the brokers forget a part whose job has ended. Begun again, it would land again."""
        self._transactions.delete_group(part, _ADMIN_S)

    def close(self) -> None:
        """Let go of the connections. Closing twice does nothing."""
        self._held = None
        self._transactions.close()

    def _stable_offset(self, part: PartIdentity, deadline: float) -> CommittedOffset | None:
        while True:
            try:
                return self._transactions.committed(part, self._left(deadline))
            except OffsetUnstable:
                if self._clock.monotonic() + _UNSTABLE_POLL_S >= deadline:
                    raise
                self._clock.sleep(_UNSTABLE_POLL_S)

    def _require_remembered(self, part: PartIdentity, first_begun_ms: int | None, deadline: float) -> None:
        """Whatever landed has landed after the part was first begun: nothing that young can be forgotten."""
        if first_begun_ms is None:
            return
        retention = self._transactions.offset_retention_ms(self._left(deadline))
        # A day for clocks that are wrong; less where the brokers forget so early that no part would be left.
        trusted = retention - min(_DAY_MS, retention // 2)
        age = self._clock.now_ms() - first_begun_ms
        if age > trusted:
            raise OffsetExpired(
                f"{part} was first begun {age / _DAY_MS:.1f} days ago, and brokers forget offsets after "
                f"{retention / _DAY_MS:.1f} days (offsets.retention.minutes): what has landed of it is not known",
                remedy="Compare the source with what is stored, and import what is missing with a new job",
            )

    def _require_held(self, chunk: int) -> PartIdentity:
        if self._held is None:
            raise RuntimeError("a part has to be begun, again after a failure, before a chunk of it lands")
        if chunk != self._chunks:
            raise ValueError(f"chunk {chunk} of {self._held} can't land: {self._chunks} is the next one")
        return self._held

    def _left(self, deadline: float) -> float:
        """How long the next request may take."""
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise DeadlinePassed(
                f"the deadline has passed, or a transaction took longer than {TRANSACTION_TIMEOUT_S:g} s",
                remedy="Begin the part again under a lease that is renewed in time",
            )
        return min(left, TRANSACTION_TIMEOUT_S)
