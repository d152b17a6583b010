"""The plan of a query, as `strandline promql explain` shows it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from strandline.node.client.answers import SelectorSize
from strandline.node.client.moments import format_duration, format_time
from strandline.node.output import Block
from strandline.promql.plan.explaining import Explanation, FrontNode, ShardFragment
from strandline.promql.plan.query_times import QueryTimes


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The plan, and with a node, by the fragment's number, how many series its selector matches there and an estimate
    of their samples.
    """

    query: str
    times: QueryTimes
    front: FrontNode
    fragments: tuple[ShardFragment, ...]
    series: Mapping[int, int] | None = None
    estimated_samples: Mapping[int, int] | None = None
    warnings: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls,
        query: str,
        times: QueryTimes,
        plan: Explanation,
        sizes: Mapping[int, SelectorSize] | None = None,
        warnings: tuple[str, ...] = (),
    ) -> "PlanReport":
        """The report of a plan. `query` is the formatted query."""
        series, samples = None, None
        if sizes is not None:
            series = {number: one.series for number, one in sizes.items()}
            samples = {number: one.samples for number, one in sizes.items() if one.samples is not None}
        return cls(query, times, plan.front, plan.fragments, series, samples, warnings)

    def blocks(self) -> Iterator[Block]:
        """The query, the front's tree, and each fragment."""
        yield self.query
        yield _when(self.times)
        yield ""
        yield "Front:"
        yield from _tree(self.front, 1)
        for one in self.fragments:
            yield ""
            yield f"Fragment {one.number}, in every shard:"
            yield from (f"  {name:<11}{text}" for name, text in self._lines(one))

    def notes(self) -> Iterator[str]:
        """The warnings of the node."""
        yield from self.warnings

    def _lines(self, one: ShardFragment) -> Iterator[tuple[str, str]]:
        yield "select", one.selector
        if one.pushed:
            yield "narrowed", f"by {', '.join(one.pushed)}, which the left side has"
        if self.series is not None and one.number in self.series:
            yield "series", f"about {self.series[one.number]:,}"
        times = f"{format_time(one.first)} to {format_time(one.last)}"
        if self.estimated_samples is not None and one.number in self.estimated_samples:
            times = f"about {self.estimated_samples[one.number]:,} (an estimate), {times}"
        yield "samples", times
        if one.window:
            yield "window", f"{one.window}, at {one.steps:,} step{'s' if one.steps != 1 else ''}"
        for link in one.chain:
            yield "then", link
        if one.aggregation:
            yield "aggregate", one.aggregation
        yield "return", one.returns


def _when(times: QueryTimes) -> str:
    if times.is_instant:
        return f"at {format_time(times.start)}"
    bounds = f"from {format_time(times.start)} to {format_time(times.end)}"
    return f"{bounds}, every {format_duration(times.step)}: {times.grid.count:,} steps"


def _tree(node: FrontNode, depth: int) -> Iterator[str]:
    source = f" of fragment {node.fragment}" if node.fragment else ""
    yield f"{'  ' * depth}{node.operation}{source}"
    for child in node.children:
        yield from _tree(child, depth + 1)
