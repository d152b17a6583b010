"""The reports of `strandline job import` before it imports: the plan, and a preview."""

from dataclasses import dataclass

from strandline.jobs.importing.estimating import ImportEstimate
from strandline.jobs.importing.planning import ImportPlan
from strandline.jobs.report import BadLine
from strandline.jobs.sources.compressed import compression_of
from strandline.node.bulk.reports import bad_line_table, nulls_left_out
from strandline.node.output import Block, Table
from strandline.node.recovering.formatting import count, duration, moment, size
from strandline.time_range import EARLIEST, LATEST

_MAX_SHOWN = 50
_ORDERED = "Parts run in this order, one at a time: of samples with the same series and time, the last one wins."
_UNORDERED = (
    "Of samples with the same series and time, the last one wins within a part. Between parts, it is undefined which "
    "one wins, unless you use --ordered."
)
_PARTITIONS = (
    "If partitions were added to the topic after a sample was stored, an older copy in a higher shard may win."
)


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A file of a plan."""

    uri: str
    size: int
    parts: int
    compression: str | None


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What an import would read, and its estimated result. `seconds` is the time for one process: it must read
    everything, and `--rate` limits how fast it lands.
    """

    files: tuple[PlannedSource, ...]
    parts: int
    bytes: int
    oldest: int
    newest: int
    estimate: ImportEstimate | None
    seconds: float | None
    ordered: bool = False

    @classmethod
    def of(cls, plan: ImportPlan, estimate: ImportEstimate | None, rate: float | None = None) -> "PlanReport":
        """The report of a plan and its estimate; None if there is nothing to read."""
        parts: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for part in plan.parts:
            parts[part.uri] = parts.get(part.uri, 0) + 1
            sizes[part.uri] = sum(file.size for file in part.files)
        files = tuple(PlannedSource(uri, sizes[uri], number, compression_of(uri)) for uri, number in parts.items())
        times = plan.spec.times
        seconds = estimate.seconds if estimate is not None else None
        if seconds is not None and rate is not None and estimate is not None and estimate.samples is not None:
            seconds = max(seconds, estimate.samples / rate)
        return cls(
            files, len(plan.parts), sum(sizes.values()), times.first, times.last, estimate, seconds, plan.spec.ordered
        )

    def blocks(self) -> list[Block]:
        """Tables and lines."""
        rows = tuple(
            (
                one.uri,
                size(one.size),
                f"{one.parts} ({one.compression}: can't be divided)" if one.compression else str(one.parts),
            )
            for one in self.files[:_MAX_SHOWN]
        )
        more = len(self.files) - _MAX_SHOWN
        found: list[Block] = [Table(("file", "size", "parts"), rows)]
        if more > 0:
            found.append(f"and {count(more)} more files")
        found.append(f"{count(self.parts)} parts of {count(len(self.files))} files, {size(self.bytes)}.")
        if self.estimate is not None:
            found += _estimated(self.estimate)
        if self.seconds is not None:
            takes = duration(self.seconds)
            found.append(f"One process takes about {takes}, plus waiting for Kafka and for lagging shards.")
        limits = [f"before {moment(self.oldest)}"] if self.oldest > EARLIEST else []
        limits += [f"after {moment(self.newest)}"] if self.newest < LATEST else []
        if limits:
            found.append(f"Samples {' or '.join(limits)} would be bad records.")
        found.append("Stored samples with the same series and time are replaced.")
        if self.parts > 1:
            found.append(_ORDERED if self.ordered else _UNORDERED)
        found.append(f"{_PARTITIONS} Nothing was written.")
        return found


def _estimated(estimate: ImportEstimate) -> list[Block]:
    by = f"estimated from {count(estimate.sampled)} records in {count(estimate.pieces)} pieces of the files"
    if estimate.records is None or estimate.samples is None or estimate.bad_records is None:
        found: list[Block] = [f"The number of records is unknown, because files are compressed. The rest is {by}."]
    else:
        records, samples, bad = estimate.records, estimate.samples, estimate.bad_records
        found = [f"About {count(records)} records with {count(samples)} samples, {count(bad)} bad records, {by}."]
    if estimate.first is not None and estimate.behind is not None:
        between = f"between {moment(estimate.first)} and {moment(estimate.behind)}"
        found.append(f"Samples are {between}: up to {count(estimate.hours)} hours are affected.")
    if estimate.nulls:
        found.append(f"In these pieces, {nulls_left_out(estimate.nulls)}")
    if estimate.bad:
        rows = sorted(estimate.bad.items(), key=lambda one: -one[1])
        numbers = tuple((count(number), reason) for reason, number in rows)
        found.append(Table(("bad in these pieces", "reason"), numbers))
    return found


@dataclass(frozen=True, slots=True)
class Preview:
    """The first samples of an import."""

    samples: tuple[tuple[str, int, float], ...]
    bad_lines: tuple[BadLine, ...]

    def blocks(self) -> list[Block]:
        """The samples, and bad records."""
        rows = tuple((labels, moment(time), repr(value)) for labels, time, value in self.samples)
        found: list[Block] = [Table(("series", "time", "value"), rows)]
        if self.bad_lines:
            found.append(bad_line_table(self.bad_lines))
        return found
