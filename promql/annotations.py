"""Annotations of a result: warnings and infos, with Prometheus' texts.

Each text occurs once, no matter how many series and steps cause it. The position in the query is added when an
annotation is displayed, so that shards need not know the query.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np

from strandline.arrays import F64s
from strandline.promql.expressions import Span
from strandline.promql.go_text import quoted, short_number
from strandline.promql.values import NO_SAMPLE_BITS, F64Matrix


class Level(StrEnum):
    """The level of an annotation. The value is the prefix of its text."""

    WARNING = "PromQL warning"
    INFO = "PromQL info"


@dataclass(frozen=True, slots=True)
class ForcedMonotonicity:
    """By how much bucket counts had to be changed to be monotonic, over the whole query. Times are milliseconds."""

    min_time: int
    max_time: int
    min_bucket: float
    max_bucket: float
    max_difference: float
    count: int = 1

    def merged(self, other: "ForcedMonotonicity") -> "ForcedMonotonicity":
        """Combine with the values of another one."""
        return ForcedMonotonicity(
            min(self.min_time, other.min_time),
            max(self.max_time, other.max_time),
            min(self.min_bucket, other.min_bucket),
            max(self.max_bucket, other.max_bucket),
            max(self.max_difference, other.max_difference),
            self.count + other.count,
        )


@dataclass(frozen=True, slots=True)
class Annotation:
    """A warning or an info. `span` is the part of the query that it concerns, if known."""

    level: Level
    text: str
    span: Span | None = None
    forced: ForcedMonotonicity | None = None

    def shown(self, query: str) -> str:
        """The text in an answer to this query."""
        text = f"{self.level.value}: {self.text}"
        if self.forced is not None:
            text += _forced_text(self.forced)
        return text if self.span is None else f"{text} ({_position(query, self.span.start)})"


@dataclass(frozen=True, slots=True, init=False)
class Annotations:
    """Annotations, each text once: of several with the same text, the last one is kept. Immutable; `|` merges."""

    items: tuple[Annotation, ...]

    def __init__(self, items: Iterable[Annotation] = ()) -> None:
        found: dict[tuple[Level, str], Annotation] = {}
        for item in items:
            key = (item.level, item.text)
            before = found.get(key)
            if before is not None and before.forced is not None and item.forced is not None:
                item = replace(item, forced=before.forced.merged(item.forced))  # noqa: PLW2901
            found[key] = item
        object.__setattr__(self, "items", tuple(found.values()))

    def __or__(self, other: "Annotations") -> "Annotations":
        if not other.items:
            return self
        return Annotations((*self.items, *other.items)) if self.items else other

    def __bool__(self) -> bool:
        return bool(self.items)

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self.items)

    def at(self, span: Span) -> "Annotations":
        """The same annotations, for this part of the query."""
        return Annotations(replace(item, span=span) for item in self.items) if self.items else self

    def warnings(self, query: str, limit: int = 0) -> list[str]:
        """The texts of the warnings. Above `limit` (0: no limit), the last line is the number of omitted ones."""
        return self._shown(Level.WARNING, "warning", query, limit)

    def infos(self, query: str, limit: int = 0) -> list[str]:
        """The texts of the infos, limited like `warnings`."""
        return self._shown(Level.INFO, "info", query, limit)

    def _shown(self, level: Level, word: str, query: str, limit: int) -> list[str]:
        texts = [item.shown(query) for item in self.items if item.level is level]
        if not limit or len(texts) <= limit:
            return texts
        return [*texts[:limit], f"{len(texts) - limit} more {word} annotations omitted"]


NONE = Annotations()


def invalid_quantile(quantile: float, span: Span | None = None) -> Annotation:
    """A quantile is NaN or outside of [0, 1]."""
    return Annotation(Level.WARNING, f"quantile value should be between 0 and 1, got {short_number(quantile)}", span)


def invalid_ratio(ratio: float, used: float, span: Span | None = None) -> Annotation:
    """The ratio of `limit_ratio` is outside of [-1, 1]."""
    got = f"got {short_number(ratio)}, capping to {short_number(used)}"
    return Annotation(Level.WARNING, f"ratio value should be between -1 and 1, {got}", span)


def bad_bucket_label(label: str, metric: str = "", span: Span | None = None) -> Annotation:
    """The label `le` of a bucket is missing or is not a number."""
    text = f'bucket label "le" is missing or has a malformed value of {quoted(label)}'
    return Annotation(Level.WARNING, text + _for_metric(metric), span)


def sort_in_range_query(span: Span | None = None) -> Annotation:
    """`sort` in a range query."""
    text = "sort is ineffective for range queries since results are always ordered by labels"
    return Annotation(Level.WARNING, text, span)


def possible_non_counter(metric: str, span: Span | None = None) -> Annotation:
    """`rate` or `increase` of a metric whose name does not end like a counter's."""
    text = f"metric might not be a counter, name does not end in _total/_sum/_count/_bucket: {quoted(metric)}"
    return Annotation(Level.INFO, text, span)


def incompatible_types(operator: str, span: Span | None = None) -> Annotation:
    """An operator for native histograms between floats."""
    text = f'incompatible sample types encountered for binary operator "{operator}": float {operator} float'
    return Annotation(Level.INFO, text, span)


def is_counter_name(metric: str) -> bool:
    """Whether a metric's name ends like a counter's. True for an empty name."""
    return not metric or metric.endswith(("_total", "_sum", "_count", "_bucket"))


def forced_monotonicity(forced: ForcedMonotonicity, metric: str = "", span: Span | None = None) -> Annotation:
    """`histogram_quantile` of buckets whose counts are not monotonic."""
    text = (
        "input to histogram_quantile needed to be fixed for monotonicity"
        " (see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)"
    )
    return Annotation(Level.INFO, text + _for_metric(metric), span, forced)


def invalid_quantiles(quantiles: F64s, values: F64Matrix, span: Span | None = None) -> Annotations:
    """Warnings about the parameter of a quantile, for the steps at which any series has a value."""
    invalid = np.isnan(quantiles) | (quantiles < 0) | (quantiles > 1)
    if not invalid.any():
        return NONE
    used = (values.view(np.int64) != NO_SAMPLE_BITS).any(axis=0)
    return Annotations(invalid_quantile(float(quantile), span) for quantile in np.unique(quantiles[invalid & used]))


def _for_metric(metric: str) -> str:
    return f" for metric name {quoted(metric)}" if metric else ""


def _forced_text(forced: ForcedMonotonicity) -> str:
    buckets = f"from buckets {short_number(forced.min_bucket)} to {short_number(forced.max_bucket)}"
    difference = f"with a max diff of {forced.max_difference:.2g}"
    times = f"from {_format_time(forced.min_time)} to {_format_time(forced.max_time)}"
    return f", {buckets}, {difference}, over {forced.count} samples {times}"


def _format_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _position(query: str, start: int) -> str:
    """Line and column. Prometheus counts columns in bytes."""
    before = query[:start].encode()
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return f"{line}:{column}"
