"""The results of `strandline bench promql`, as values, tables and a picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from strandline.node.bench.line_chart import Line, Panel, Point, line_charts
from strandline.node.bench.load_report import LoadReport, ProcessMemory
from strandline.node.bench.machine import MIB, Machine
from strandline.node.output import Block, Table


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a query on one server: the median time, the CPU time per query, and the rise of memory above its
    value before the first query. None if unknown, for a server that was started externally.
    """

    server: str
    p50_ms: float
    cpu_ms: float | None
    peak_bytes: int | None

    @classmethod
    def of(cls, server: str, times: Sequence[float], cpu_seconds: float | None, peak_bytes: int | None) -> "Cost":
        """The cost from the milliseconds of each request, and the total CPU time."""
        cpu_ms = None if cpu_seconds is None else 1000 * cpu_seconds / len(times)
        return cls(server, median(times), cpu_ms, peak_bytes)

    def cells(self) -> tuple[str, ...]:
        """The cells of a table."""
        peak = "-" if self.peak_bytes is None else f"{self.peak_bytes / MIB:,.0f}"
        return _ms(self.p50_ms), "-" if self.cpu_ms is None else _ms(self.cpu_ms), peak


@dataclass(frozen=True, slots=True)
class QueryCost:
    """One query over one range, on the node and on each peer."""

    what: str
    expression: str
    hours: float
    steps: int
    series: int
    """The approximate number of series that the selector matches."""
    results: int
    requests: int
    node: Cost
    peers: tuple[Cost, ...]

    def row(self) -> tuple[str, ...]:
        """A row of the table. The last columns are the node's CPU time divided by the peer's: below 1, the node is
        cheaper.
        """
        ratios = (_ratio(self.node.cpu_ms, peer.cpu_ms) for peer in self.peers)
        own = (self.what, f"{self.requests:,}", f"{self.results:,}", *self.node.cells())
        return (*own, *(cell for peer in self.peers for cell in peer.cells()), *ratios)


@dataclass(frozen=True, slots=True)
class PromqlReport:
    """The results of one run. `scaling` has one query over increasing numbers of series and over increasing ranges."""

    series: int
    samples: int
    stored_samples: int
    machine: Machine
    load_average: float
    peers: tuple[str, ...]
    notes: tuple[str, ...]
    queries: tuple[QueryCost, ...]
    scaling: tuple[QueryCost, ...]
    memory: tuple[ProcessMemory, ...] = ()
    """The memory of the node's processes before the first query, and the maximum rise with any query."""
    load: LoadReport | None = None

    def blocks(self) -> Iterator[Block]:
        """A table for each range."""
        yield (
            f"{self.series:,} series in one shard, {self.samples:,} samples 15 s apart, {self.stored_samples:,} of "
            "them in segments and the others in the buffer; asked in turn, over one connection each"
        )
        yield f"{self.machine}; load average before the queries: {self.load_average:.1f}"
        yield from self.notes
        for hours, steps in dict.fromkeys((one.hours, one.steps) for one in self.queries):
            chosen = [one for one in self.queries if (one.hours, one.steps) == (hours, steps)]
            yield ""
            yield Table(self._columns(f"{hours:g} h at {steps} steps"), tuple(one.row() for one in chosen))
        if self.memory:
            yield ""
            yield "peak memory of the node: " + "; ".join(map(str, self.memory))
        if self.scaling:
            yield ""
            columns = ("series", "range", *self._columns("")[1:])
            rows = tuple((f"{one.series:,}", f"{one.hours:g} h", *one.row()[1:]) for one in self.scaling)
            yield Table(columns, rows)
        if self.load is not None:
            yield ""
            yield from self.load.blocks()

    def _columns(self, first: str) -> tuple[str, ...]:
        figures = ("p50 ms", "CPU ms", "peak MB")
        theirs = tuple(f"{peer} {figure}" for peer in self.peers for figure in figures)
        return (first, "asked", "results", *figures, *theirs, *(f"CPU by {peer}'s" for peer in self.peers))


def picture(report: PromqlReport) -> str:
    """Time and memory of one query against the number of series and, if there are several, against the range, for the
    node and each peer.
    """
    shortest = min(one.hours for one in report.scaling)
    largest = max(one.series for one in report.scaling)
    by_series = [one for one in report.scaling if one.hours == shortest]
    by_range = [one for one in report.scaling if one.series == largest]
    panels = []
    axes = [(by_series, "series", _series)]
    if len(by_range) > 1:
        axes.append((by_range, "hours", _hours))
    for chosen, x_label, by in axes:
        for title, unit, figure in (("Time", "ms", _time), ("Memory", "MB", _memory)):
            lines = []
            for number, name in enumerate(("strandline", *report.peers)):
                points = [Point(by(one), figure((one.node, *one.peers)[number])) for one in chosen]
                lines.append(Line(name, points))
            panels.append(Panel(f"{title} against {x_label}", x_label, f"{title.lower()}, {unit}", f" {unit}", lines))
    subtitle = f"{report.scaling[0].what}; {report.series:,} series, one shard; {report.machine.cores} cores"
    return line_charts("A PromQL query", subtitle, panels)


def _series(one: QueryCost) -> float:
    return one.series


def _hours(one: QueryCost) -> float:
    return one.hours


def _time(cost: Cost) -> float:
    return cost.p50_ms


def _memory(cost: Cost) -> float:
    return (cost.peak_bytes or 0) / MIB


def _ratio(ours: float | None, theirs: float | None) -> str:
    return "-" if ours is None or not theirs else f"{ours / theirs:.2f}"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.1f}"
