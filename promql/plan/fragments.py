"""Fragments, which shards evaluate: a selector, a window function, a chain of functions and operators on single values,
and an aggregation.

The result of a fragment is the rows of its series or, with an aggregation, a state that is merged with those of other
shards. All parameters are known before samples are read.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from strandline.arrays import F64s
from strandline.index.matchers import Matcher, MatchOp
from strandline.index.selectors import METRIC_NAME
from strandline.promql.aggregation.spec import AggregationSpec
from strandline.promql.expressions import Aggregator, Operator, Span
from strandline.promql.values import Grid

Parameter = tuple[float, ...]
"""One number for all steps, or one for each."""


@dataclass(frozen=True, slots=True)
class MapLink:
    """A function of single values."""

    function: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class NegateLink:
    """Negation."""


@dataclass(frozen=True, slots=True)
class OperatorLink:
    """A binary operator with a scalar on one side."""

    operator: Operator
    scalar: Parameter
    scalar_is_left: bool
    returns_bool: bool


Link = MapLink | NegateLink | OperatorLink


@dataclass(frozen=True, slots=True)
class Grouping:
    """An aggregation over the rows of a fragment."""

    aggregator: Aggregator
    labels: tuple[str, ...]
    is_without: bool
    parameter: Parameter | str | None
    span: Span = field(default=Span(0, 0), compare=False)

    @property
    def value_label(self) -> str:
        """The label that `count_values` writes; empty for other aggregations."""
        return self.parameter if isinstance(self.parameter, str) else ""

    def spec(self, steps: int) -> AggregationSpec:
        """The specification of the aggregation for this number of steps."""
        parameter = per_step(self.parameter, steps) if isinstance(self.parameter, tuple) else self.parameter
        return AggregationSpec(self.aggregator, self.labels, self.is_without, parameter)


LATEST, TIMESTAMP = "", "timestamp"
"""The functions of instant selectors: the value, or the timestamp in seconds, of the newest sample."""
KEEP_NAMES = frozenset({LATEST, "last_over_time", "first_over_time"})
"""Functions that keep the metric name."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """`function` of each series' samples in (end - window, end], for each end; then the chain; then the aggregation.
    `times` are the evaluation timestamps to which the ends belong.
    """

    matchers: tuple[Matcher, ...]
    function: str
    ends: Grid
    window: int
    times: Grid
    parameters: tuple[Parameter, ...] = ()
    chain: tuple[Link, ...] = ()
    grouping: Grouping | None = None
    span: Span = field(default=Span(0, 0), compare=False)
    pushed: tuple[Matcher, ...] = field(default=(), compare=False)
    """The matchers that were pushed from the left side of `and` or `unless`. Only for `explaining`."""

    @property
    def name_is_fixed(self) -> bool:
        """Whether all series have the same metric name, so that they are distinct without it."""
        return fixed_name(self.matchers) is not None

    @property
    def drops_name(self) -> bool:
        """Whether the function or the chain drops the metric name."""
        return self.function not in KEEP_NAMES or any(map(_drops_name, self.chain))

    @property
    def is_extensible(self) -> bool:
        """Whether a link or an aggregation may be added. Not after a metric name was dropped that is not fixed: rows of
        several shards may then have equal label sets, and have to be merged or are an error.
        """
        return self.grouping is None and (self.name_is_fixed or not self.drops_name)

    def with_link(self, link: Link) -> "Fragment":
        """The fragment with a further link."""
        return replace(self, chain=(*self.chain, link))

    @property
    def first(self) -> int:
        """The time of the first sample that is read, in milliseconds."""
        return self.ends.start - self.window + 1

    @property
    def last(self) -> int:
        """The time of the last sample that is read, in milliseconds."""
        return self.ends.end


@dataclass(frozen=True, slots=True)
class SamplesFragment:
    """Raw samples from `first` to `last`."""

    matchers: tuple[Matcher, ...]
    first: int
    last: int
    pushed: tuple[Matcher, ...] = field(default=(), compare=False)


AnyFragment = Fragment | SamplesFragment


def fixed_name(matchers: tuple[Matcher, ...]) -> str | None:
    """The metric name, if a matcher fixes it."""
    return next((one.value for one in matchers if one.label == METRIC_NAME and one.op is MatchOp.EQUAL), None)


def per_step(parameter: Parameter, count: int) -> F64s:
    """The parameter with one number for each step."""
    return np.full(count, parameter[0]) if len(parameter) == 1 else np.array(parameter)


def _drops_name(link: Link) -> bool:
    match link:
        case OperatorLink(operator=operator, returns_bool=returns_bool):
            return returns_bool or not operator.is_comparison
        case _:
            return True
