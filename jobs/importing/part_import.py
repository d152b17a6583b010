"""One part of an import, from its source into Kafka: each chunk is read, packed and landed, and counted once.

Chunks that have landed already, under this worker or another, are read again and not landed again: so the outcome of a
part is the same, bad records and hours included, however often it was begun. What was counted when they landed must be
what is counted now; if it is not, the source or its reading has changed, and the part fails by name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from strandline.errors import Fatal
from strandline.jobs.bad_records import BadRecords
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.importing.chunks import Chunk
from strandline.jobs.landing.packing import Packed, PackedRecord, pack
from strandline.jobs.landing.progress import Landed, Progress
from strandline.jobs.landing.transactions import RecordsRefused
from strandline.jobs.outcome import PartOutcome, SamplesByTime
from strandline.recovery.periods import HOUR
from strandline.time_range import TimeRange


class SourceUnstable(Fatal):
    """A chunk that has landed is not what it was when it landed."""


class ChunkLog(Protocol):
    """A part log that has begun the part: see `strandline.jobs.landing.part_log`."""

    def partitions(self, deadline: float) -> int: ...

    def land(self, chunk: int, records: Sequence[PackedRecord], progress: Progress, deadline: float) -> None: ...


@dataclass(frozen=True, slots=True)
class PartHooks:
    """What happens around each chunk of a part.

    `deadline` says until when, on the monotonic clock, Kafka may be used: the rest of the lease. `before_landing` gets
    the samples of a chunk and returns when they may land; it raises if the part is to stop, or its source has changed.
    `report` hears, after each chunk, what was counted so far, and `report_rejected` the same before an error is raised
    for records that Kafka has refused.
    """

    deadline: Callable[[], float]
    before_landing: Callable[[int], None] = lambda _samples: None
    report: Callable[[AttemptCounts], None] = lambda _counts: None
    report_rejected: Callable[[AttemptCounts], None] = lambda _counts: None


def run_part(chunks: Iterable[Chunk], landed: Landed, log: ChunkLog, times: TimeRange, hooks: PartHooks) -> PartOutcome:
    """Land all chunks of a part that have not landed yet; the outcome of the whole part."""
    outcome, before = PartOutcome(), Counts()
    for number, chunk in enumerate(chunks):
        is_landed = number < landed.chunks
        # Into how many records a landed chunk went depends on the partitions that there were then: they are not counted
        # again, but taken from what was noted when it landed.
        partitions = 1 if is_landed else log.partitions(hooks.deadline())
        packed = [pack(block, partitions, times, offset=offset) for offset, block in chunk.blocks]
        records = [record for one in packed for record in one.records]
        last = outcome.counts
        outcome += _outcome_of(chunk, packed, [] if is_landed else records)
        if number + 1 == landed.chunks:
            outcome = _as_it_landed(outcome, chunk, landed)
            before = outcome.counts
        if not is_landed:
            hooks.before_landing(sum(one.samples for one in packed))
            progress = Progress(chunk.position, outcome.counts.as_numbers())
            try:
                log.land(number, records, progress, hooks.deadline())
            except RecordsRefused:
                refused = Counts(refused=sum(one.samples for one in packed))
                hooks.report_rejected(AttemptCounts(last, last - before + refused))
                raise
        hooks.report(AttemptCounts(outcome.counts, Counts() if is_landed else outcome.counts - before))
    if outcome.chunks < landed.chunks:
        raise _unstable(f"it has {outcome.chunks} chunks, and {landed.chunks} of them have landed")
    return outcome


def _outcome_of(chunk: Chunk, packed: list[Packed], records: list[PackedRecord]) -> PartOutcome:
    left_out = BadRecords.joined([one.bad for one in packed])
    return PartOutcome(
        counts=Counts(
            records=chunk.records,
            samples=sum(one.samples for one in packed),
            bad=chunk.bad.total + left_out.total,
            sent=len(records),
            bytes=sum(len(record.value) for record in records),
        ),
        chunks=1,
        lines=chunk.lines,
        series=sum(one.series for one in packed),
        times=SamplesByTime.joined(
            SamplesByTime(HOUR, {hour * HOUR: count for hour, count in one.hours.items()}) for one in packed
        ),
        bad=BadRecords.joined([chunk.bad, left_out]),
        nulls=chunk.nulls,
    )


def _as_it_landed(outcome: PartOutcome, last: Chunk, landed: Landed) -> PartOutcome:
    """The outcome of the chunks that have landed, with the counts that were noted then."""
    counts = Counts(*landed.progress.counts)
    now = outcome.counts
    seen, noted = (now.records, now.samples, now.bad), (counts.records, counts.samples, counts.bad)
    if last.position != landed.progress.position or seen != noted:
        raise _unstable(
            f"when its first {landed.chunks} chunks landed they ended at {landed.progress.position}, with {noted[0]} "
            f"records, {noted[1]} samples and {noted[2]} bad records; now they end at {last.position}, with {seen[0]}, "
            f"{seen[1]} and {seen[2]}"
        )
    return replace(outcome, counts=counts)


def _unstable(what: str) -> SourceUnstable:
    return SourceUnstable(
        f"the part's source has changed since a part of it landed: {what}",
        remedy="Put the former source back and resume; or cancel the job and plan another for what is missing",
    )
