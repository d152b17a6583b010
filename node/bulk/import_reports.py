"""What `strandline job import` tells before it imports: the plan, and the first samples."""

from dataclasses import dataclass

from strandline.jobs.importing.planning import ImportPlan
from strandline.jobs.report import BadLine
from strandline.jobs.sources.compressed import compression_of
from strandline.node.bulk.reports import bad_line_table
from strandline.node.output import Block, Table
from strandline.node.recovering.words import count, moment, size

_MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A file of a plan."""

    uri: str
    size: int
    parts: int
    compression: str | None


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What an import would read."""

    files: tuple[PlannedSource, ...]
    parts: int
    bytes: int
    oldest: int
    newest: int

    @classmethod
    def of(cls, plan: ImportPlan) -> "PlanReport":
        """A plan, told."""
        parts: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for part in plan.parts:
            parts[part.uri] = parts.get(part.uri, 0) + 1
            sizes[part.uri] = sum(file.size for file in part.files)
        files = tuple(PlannedSource(uri, sizes[uri], number, compression_of(uri)) for uri, number in parts.items())
        times = plan.spec.times
        return cls(files, len(plan.parts), sum(sizes.values()), times.first, times.last)

    def blocks(self) -> list[Block]:
        """For people."""
        rows = tuple(
            (
                one.uri,
                size(one.size),
                f"{one.parts} ({one.compression}: can't be divided)" if one.compression else str(one.parts),
            )
            for one in self.files[:_MOST_SHOWN]
        )
        more = len(self.files) - _MOST_SHOWN
        found: list[Block] = [Table(("file", "size", "parts"), rows)]
        if more > 0:
            found.append(f"and {count(more)} more files")
        found.append(f"{count(self.parts)} parts of {count(len(self.files))} files, {size(self.bytes)}.")
        found.append(f"Samples before {moment(self.oldest)} or after {moment(self.newest)} would be bad records.")
        found.append("Samples of one series and time that are there already are replaced. Nothing was written.")
        return found


@dataclass(frozen=True, slots=True)
class Preview:
    """The first samples of an import."""

    samples: tuple[tuple[str, int, float], ...]
    bad_lines: tuple[BadLine, ...]

    def blocks(self) -> list[Block]:
        """For people."""
        rows = tuple((labels, moment(time), repr(value)) for labels, time, value in self.samples)
        found: list[Block] = [Table(("series", "time", "value"), rows)]
        if self.bad_lines:
            found.append(bad_line_table(self.bad_lines))
        return found
