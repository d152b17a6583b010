"""What was written to the log, by which client and when, and what was acknowledged: the basis of all comparisons."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.memory_log import MemoryLog, MemoryTransaction
from strandline.recovery.cutting import NO_TIME
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.seeded.clocks import MachineClock, TrueTime

Name = tuple[str, str]


class Sample(NamedTuple):
    name: Name
    time: int
    value: float


@dataclass
class LogRecord:
    """A record in the log. `appended` is the true time, `time` that of the broker's clock. A record of a transaction is
    visible once it was committed at `seen_at`.
    """

    offset: int
    appended: int
    time: int
    samples: tuple[Sample, ...]
    times_checked: bool
    seen_at: int | None


def body_of(samples: Sequence[Sample]) -> bytes:
    """A remote-write request."""
    return compress(
        encode_request(
            Series([("__name__", one.name[0]), ("name", one.name[1])], [(one.time, one.value)]) for one in samples
        )
    )


@dataclass
class OpenTransaction:
    transaction: MemoryTransaction
    records: list[LogRecord] = field(default_factory=list)


class Ledger:
    """The log, and everything that was ever appended to it."""

    def __init__(self, time: TrueTime, broker: MachineClock, limits: SampleLimits) -> None:
        self.log = MemoryLog()
        self.records: list[LogRecord] = []
        self.acknowledged: list[Sample] = []
        self.open: OpenTransaction | None = None
        self._time, self._broker, self._limits = time, broker, limits

    def append(self, value: bytes, samples: Sequence[Sample], *, times_checked: bool, timed: bool = True) -> int:
        """Append one record now. Returns the time that the broker assigns to it."""
        time = self._broker.now_ms() if timed else NO_TIME
        offset = self.log.append(value, time, times_checked=times_checked)
        now = self._time.now_ms
        self.records.append(LogRecord(offset, now, time, tuple(samples), times_checked, now))
        return time

    def begin(self, samples: Sequence[Sample]) -> None:
        """A producer without a gateway begins a transaction with one record."""
        if self.open is not None:
            return
        self.open = OpenTransaction(self.log.begin())
        time = self._broker.now_ms()
        offset = self.open.transaction.append(body_of(samples), time)
        self.open.records.append(LogRecord(offset, self._time.now_ms, time, tuple(samples), False, None))

    def end(self, *, commit: bool) -> None:
        """This producer ends its transaction."""
        opened, self.open = self.open, None
        if opened is None:
            return
        if commit:
            opened.transaction.commit()
            for record in opened.records:
                record.seen_at = self._time.now_ms
            self.records = sorted([*self.records, *opened.records], key=lambda record: record.offset)
        else:
            opened.transaction.abort()

    def delete_older_than(self, age_ms: int, *, keep_from: int | None = None) -> None:
        """Apply the retention, but keep everything from `keep_from` on. What aborted transactions have left before the
        first kept record is deleted regardless of its age, as by a limit of the log's size, so that a loss may end in
        the open bucket.
        """
        before = self._time.now_ms - age_ms
        kept = [record.offset for record in self.records if record.appended >= before]
        opened = [record.offset for record in self.open.records] if self.open is not None else []
        first = min([*kept, *opened, self.log.ends().high if not kept else kept[0]])
        self.log.delete_before(first if keep_from is None else min(first, keep_from))

    def taken(self, record: LogRecord) -> Iterator[Sample]:
        """The samples of a record that a shard accepts, in order."""
        limits = self._limits
        is_compared = not record.times_checked and record.time != NO_TIME
        for one in record.samples:
            if is_compared and limits.behind is not None and one.time < record.time - limits.behind:
                continue
            if is_compared and limits.ahead is not None and one.time > record.time + limits.ahead:
                continue
            yield one
