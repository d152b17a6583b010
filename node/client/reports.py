"""What the commands found, as values and as lines.

Lines are as many as were asked for at the most; what is left out is told apart from the lines, so that a pipe counts
what it should.
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

# Lines are printed in blocks of so many: one by one takes three times as long.
_LINES_A_BLOCK = 500


@dataclass(frozen=True, slots=True)
class SeriesReport:
    """Series, each by its labels."""

    data: tuple[Labels, ...]
    truncated: bool
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, answer: ListResult[Labels]) -> "SeriesReport":
        """The report of an answer."""
        return cls(answer.items, answer.more, answer.warnings)

    def blocks(self) -> Iterator[Block]:
        """A selector a line."""
        yield from _lines(map(selector_of, self.data))

    def notes(self) -> Iterator[str]:
        """What a person should know besides."""
        yield from _notes(len(self.data), truncated=self.truncated, what="series", warnings=self.warnings)


@dataclass(frozen=True, slots=True)
class NamesReport:
    """Names of labels, or values of one."""

    data: tuple[str, ...]
    truncated: bool
    warnings: tuple[str, ...]
    what: str = field(repr=False, default="names")

    @classmethod
    def of(cls, answer: ListResult[str], what: str) -> "NamesReport":
        """The report of an answer."""
        return cls(answer.items, answer.more, answer.warnings, what)

    def blocks(self) -> Iterator[Block]:
        """One a line."""
        yield from _lines(map(list_item, self.data))

    def notes(self) -> Iterator[str]:
        """What a person should know besides."""
        yield from _notes(len(self.data), truncated=self.truncated, what=self.what, warnings=self.warnings)


@dataclass(frozen=True, slots=True)
class QueriedSeries:
    """A series as Prometheus' API shows it: points are seconds and values."""

    metric: Labels
    values: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class QueryReport:
    """Series and their points. `steps` are those of a range query, and `plot_width` is how wide a plot of one may be;
    None for a table, or with `as_csv` for CSV.
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
        """The report of an answer; with steps, of a range query."""
        data = tuple(
            QueriedSeries(one.labels, tuple((point.time / 1000, point.value) for point in one.points))
            for one in answer.items
        )
        told = (answer.warnings, answer.infos)
        return cls(data, answer.more, *told, answer.items, line_limit, steps, plot_width, as_csv)

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
        """What a person should know besides."""
        told = (*self.warnings, *self.infos)
        yield from _notes(len(self.data), truncated=self.truncated, what="series", warnings=told)
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
        """A column for each label, and time and value; the first line names them. A label called as one of the last two
        are stands before it.
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
            yield f"  {sparkline(values, width)}  {_in_figures(one.points)}"


def _csv_line(cells: list[str]) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _nothing_found(steps: Steps | None) -> str:
    """What it means that no series has a point: a sample counts for a while only."""
    lookback = f"query.lookback ({format_duration(DEFAULT_LOOKBACK_MS)} by default)"
    if steps is None:
        return f"no series has a sample at that time, or up to {lookback} before it"
    if steps.step <= DEFAULT_LOOKBACK_MS:
        return "no series has a sample in that range"
    return (
        f"no series has a sample up to {lookback} before one of the steps; samples between them do not count, and the "
        f"steps are {format_duration(steps.step)} apart: choose a shorter --step, or a shorter range"
    )


def _on_grid(points: tuple[Point, ...], steps: Steps) -> list[float | None]:
    """The value of each step; None where there is none."""
    values: list[float | None] = [None] * ((steps.end - steps.start) // steps.step + 1)
    for point in points:
        place = round((point.time - steps.start) / steps.step)
        if 0 <= place < len(values):
            values[place] = _number(point.value)
    return values


def _in_figures(points: tuple[Point, ...]) -> str:
    numbers = [number for point in points if (number := _number(point.value)) is not None]
    finite = [number for number in numbers if math.isfinite(number)]
    last = f"last {single_line(points[-1].value)}" if points else "no sample"
    odd = f", {len(points) - len(finite)} not finite" if len(finite) < len(points) else ""
    return (f"{min(finite):g} to {max(finite):g}, {last}" if finite else last) + odd


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _lines(lines: Iterator[str]) -> Iterator[str]:
    while block := list(islice(lines, _LINES_A_BLOCK)):
        yield "\n".join(block)


def _notes(count: int, *, truncated: bool, what: str, warnings: tuple[str, ...]) -> Iterator[str]:
    yield from map(single_line, warnings)
    if truncated:
        yield f"there are more {what} than these {count:,}; --limit 0 lists all that the node gives"
