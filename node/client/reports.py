"""Reports of the commands that query a node.

The limit applies to lines, too. Notes about what was left out are separate from the lines, so that `| wc -l` counts
results only.
"""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from itertools import islice

from strandline.node.client.answers import Labels, ListResult, Point, SampledSeries
from strandline.node.client.moments import DEFAULT_LOOKBACK_MS, format_duration, format_time
from strandline.node.client.node_client import Steps
from strandline.node.client.notation import list_item, printable, selector_of, single_line
from strandline.node.client.sparkline import sparkline
from strandline.node.output import Block, Table

# Printing in blocks of this many lines takes a third of the time of single lines.
_LINES_PER_BLOCK = 500


@dataclass(frozen=True, slots=True)
class SeriesReport:
    """A list of series."""

    data: tuple[Labels, ...]
    truncated: bool
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, answer: ListResult[Labels]) -> "SeriesReport":
        """The report of an answer."""
        return cls(answer.items, answer.more, answer.warnings)

    def blocks(self) -> Iterator[Block]:
        """One selector per line."""
        yield from _lines(map(selector_of, self.data))

    def notes(self) -> Iterator[str]:
        """Warnings, and whether the list is truncated."""
        yield from _notes(len(self.data), truncated=self.truncated, what="series", warnings=self.warnings)


@dataclass(frozen=True, slots=True)
class NamesReport:
    """Label names, or the values of a label."""

    data: tuple[str, ...]
    truncated: bool
    warnings: tuple[str, ...]
    what: str = field(repr=False, default="names")

    @classmethod
    def of(cls, answer: ListResult[str], what: str) -> "NamesReport":
        """The report of an answer."""
        return cls(answer.items, answer.more, answer.warnings, what)

    def blocks(self) -> Iterator[Block]:
        """One name or value per line."""
        yield from _lines(map(list_item, self.data))

    def notes(self) -> Iterator[str]:
        """Warnings, and whether the list is truncated."""
        yield from _notes(len(self.data), truncated=self.truncated, what=self.what, warnings=self.warnings)


@dataclass(frozen=True, slots=True)
class QueriedSeries:
    """A series as in Prometheus' API. Points are seconds and values."""

    metric: Labels
    values: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class QueryReport:
    """The result of a query. `steps` are those of a range query. `plot_width` is the maximum width of its plots; None
    for a table, or for CSV with `as_csv`.
    """

    data: tuple[QueriedSeries, ...]
    truncated: bool
    warnings: tuple[str, ...]
    infos: tuple[str, ...]
    found: tuple[SampledSeries, ...] = field(repr=False)
    line_limit: int = field(repr=False)
    steps: Steps | None = field(repr=False, default=None)
    plot_width: int | None = field(repr=False, default=None)
    as_csv: bool = field(repr=False, default=False)

    @classmethod
    def of(
        cls,
        answer: ListResult[SampledSeries],
        line_limit: int,
        *,
        steps: Steps | None = None,
        plot_width: int | None = None,
        as_csv: bool = False,
    ) -> "QueryReport":
        """The report of an answer: of a range query if `steps` are given."""
        data = tuple(
            QueriedSeries(one.labels, tuple((point.time / 1000, point.value) for point in one.points))
            for one in answer.items
        )
        notes = (answer.warnings, answer.infos)
        return cls(data, answer.more, *notes, answer.items, line_limit, steps, plot_width, as_csv)

    def blocks(self) -> Iterator[Block]:
        """A table of series, times and values; a plot of each series; or CSV."""
        if self.as_csv:
            yield from _lines(islice(self._csv(), self.line_limit + 1 if self.line_limit else None))
        elif not self.found:
            return
        elif self.steps is not None and self.plot_width is not None:
            yield from self._plots(self.steps, self.plot_width)
        else:
            rows = islice(self._rows(), self.line_limit or None)
            yield Table(("series", "time", "value"), tuple(rows))

    def notes(self) -> Iterator[str]:
        """Warnings, and whether the list is truncated."""
        warnings = (*self.warnings, *self.infos)
        yield from _notes(len(self.data), truncated=self.truncated, what="series", warnings=warnings)
        lines = sum(len(one.points) for one in self.found)
        if self.plot_width is None and 0 < self.line_limit < lines:
            yield f"only the first {self.line_limit:,} of {lines:,} lines are shown; --limit 0 shows all"
        if not self.found:
            yield _nothing_found(self.steps)

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for one in self.found:
            name = selector_of(one.labels)
            for point in one.points:
                yield name, format_time(point.time), single_line(point.value)

    def _csv(self) -> Iterator[str]:
        """A header, and one line per sample: a column per label, then time and value. Labels named "time" or "value"
        come before these two columns.
        """
        names = sorted({name for one in self.found for name in one.labels})
        yield _csv_line([*map(printable, names), "time", "value"])
        for one in self.found:
            labels = [printable(one.labels.get(name, "")) for name in names]
            for point in one.points:
                yield _csv_line([*labels, format_time(point.time), printable(point.value)])

    def _plots(self, steps: Steps, width: int) -> Iterator[Block]:
        yield f"{format_time(steps.start)} to {format_time(steps.end)}, every {format_duration(steps.step)}"
        for one in self.found:
            yield selector_of(one.labels)
            values = _on_grid(one.points, steps)
            yield f"  {sparkline(values, width)}  {_summary(one.points)}"


def _csv_line(cells: list[str]) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _nothing_found(steps: Steps | None) -> str:
    """Explains an empty result: a sample is only used within the lookback."""
    lookback = f"query.lookback ({format_duration(DEFAULT_LOOKBACK_MS)} by default)"
    if steps is None:
        return f"no series has a sample at that time, or up to {lookback} before it"
    if steps.step <= DEFAULT_LOOKBACK_MS:
        return "no series has a sample in that range"
    return (
        f"no series has a sample up to {lookback} before one of the steps; other samples between the steps are not "
        f"used, and the step is {format_duration(steps.step)}: use a shorter --step or a shorter range"
    )


def _on_grid(points: tuple[Point, ...], steps: Steps) -> list[float | None]:
    """The value at each step; None if there is none."""
    values: list[float | None] = [None] * ((steps.end - steps.start) // steps.step + 1)
    for point in points:
        index = round((point.time - steps.start) / steps.step)
        if 0 <= index < len(values):
            values[index] = _number(point.value)
    return values


def _summary(points: tuple[Point, ...]) -> str:
    numbers = [number for point in points if (number := _number(point.value)) is not None]
    finite = [number for number in numbers if math.isfinite(number)]
    last = f"last {single_line(points[-1].value)}" if points else "no sample"
    infinite = f", {len(points) - len(finite)} not finite" if len(finite) < len(points) else ""
    return (f"{min(finite):g} to {max(finite):g}, {last}" if finite else last) + infinite


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _lines(lines: Iterator[str]) -> Iterator[str]:
    while block := list(islice(lines, _LINES_PER_BLOCK)):
        yield "\n".join(block)


def _notes(count: int, *, truncated: bool, what: str, warnings: tuple[str, ...]) -> Iterator[str]:
    yield from map(single_line, warnings)
    if truncated:
        yield f"there are more {what} than these {count:,}; --limit 0 lists all that the node returns"
