"""Runs a part of an import: reads, packs, lands and counts each chunk once.

Chunks that have landed already, from this worker or another, are read again without landing. So the outcome of a part,
including bad records and hours, is the same however often it was started. Their counts must equal those committed when
they landed; otherwise the source or the code that reads it has changed, and the part fails with an error.
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
    """Chunks that have landed differ from those now read from the source."""


class ChunkLog(Protocol):
    """The part of a `PartLog` that is used after its `begin`."""

    def partitions(self, deadline: float) -> int: ...

    def land(self, chunk: int, records: Sequence[PackedRecord], progress: Progress, deadline: float) -> None: ...


@dataclass(frozen=True, slots=True)
class PartHooks:
    """Callbacks for each chunk of a part.

    `deadline` returns until when, on the monotonic clock, Kafka may be used. `before_landing` gets the number of
    samples of a chunk and returns when they may land; it raises if the part must stop or its source has changed.
    `report` gets the counts so far after each chunk, and `report_rejected` before an error is raised for records that
    Kafka rejected.
    """

    deadline: Callable[[], float]
    before_landing: Callable[[int], None] = lambda _samples: None
    report: Callable[[AttemptCounts], None] = lambda _counts: None
    report_rejected: Callable[[AttemptCounts], None] = lambda _counts: None


def run_part(chunks: Iterable[Chunk], landed: Landed, log: ChunkLog, times: TimeRange, hooks: PartHooks) -> PartOutcome:
    """Land the chunks of a part that have not landed yet. Returns the outcome of all chunks."""
    outcome, before = PartOutcome(), Counts()
    for number, chunk in enumerate(chunks):
        is_landed = number < landed.chunks
        # The number of records of a landed chunk depended on the number of partitions at that time. They are not
        # counted again, but taken from the progress that was committed with it.
        partitions = 1 if is_landed else log.partitions(hooks.deadline())
        packed = [pack(block, partitions, times, offset=offset) for offset, block in chunk.blocks]
        records = [record for one in packed for record in one.records]
        last = outcome.counts
        outcome += _outcome_of(chunk, packed, [] if is_landed else records)
        if number + 1 == landed.chunks:
            outcome = _with_committed_counts(outcome, chunk, landed)
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
    skipped = BadRecords.joined([one.bad for one in packed])
    return PartOutcome(
        counts=Counts(
            records=chunk.records,
            samples=sum(one.samples for one in packed),
            bad=chunk.bad.total + skipped.total,
            sent=len(records),
            bytes=sum(len(record.value) for record in records),
        ),
        chunks=1,
        lines=chunk.lines,
        series=sum(one.series for one in packed),
        times=SamplesByTime.joined(
            SamplesByTime(HOUR, {hour * HOUR: count for hour, count in one.hours.items()}) for one in packed
        ),
        bad=BadRecords.joined([chunk.bad, skipped]),
        nulls=chunk.nulls,
    )


def _with_committed_counts(outcome: PartOutcome, last: Chunk, landed: Landed) -> PartOutcome:
    """The outcome of the landed chunks, with the counts committed then. Raises `SourceUnstable` if they differ."""
    counts = Counts(*landed.progress.counts)
    now = outcome.counts
    found, committed = (now.records, now.samples, now.bad), (counts.records, counts.samples, counts.bad)
    if last.position != landed.progress.position or found != committed:
        raise _unstable(
            f"when its first {landed.chunks} chunks landed they ended at {landed.progress.position}, with "
            f"{committed[0]} records, {committed[1]} samples and {committed[2]} bad records; now they end at "
            f"{last.position}, with {found[0]}, {found[1]} and {found[2]}"
        )
    return replace(outcome, counts=counts)


def _unstable(what: str) -> SourceUnstable:
    return SourceUnstable(
        f"the part's source has changed since a part of it landed: {what}",
        remedy="Put the former source back and resume; or cancel the job and plan another for what is missing",
    )
