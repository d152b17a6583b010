"""What shards evaluate: a selector, a window, a chain of functions and operators on single values, and an aggregation.

A fragment gives the rows of its series, or with an aggregation partial states that merge. Its parameters are known
before anything is read.
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
    """The other sign."""


@dataclass(frozen=True, slots=True)
class OperatorLink:
    """An operator and a scalar."""

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
        """The label that `count_values` writes; empty for others."""
        return self.parameter if isinstance(self.parameter, str) else ""

    def spec(self, steps: int) -> AggregationSpec:
        """The aggregation, for so many steps."""
        parameter = per_step(self.parameter, steps) if isinstance(self.parameter, tuple) else self.parameter
        return AggregationSpec(self.aggregator, self.labels, self.is_without, parameter)


LATEST, TIMESTAMP = "", "timestamp"
"""Functions of a lookback: the value, or the time in seconds, of the newest sample."""
KEEP_NAMES = frozenset({LATEST, "last_over_time", "first_over_time"})
"""Functions whose series keep their metric names."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """`function` of the samples in (end - window, end] of each series, at each end; then the links of the chain; then
    the aggregation. `times` are the steps that the ends belong to.
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
    """Those of the matchers that come from the left side of `and` or `unless`. For people."""

    @property
    def name_is_fixed(self) -> bool:
        """Whether all series have one metric name, so that they stay distinct without it."""
        return fixed_name(self.matchers) is not None

    @property
    def drops_name(self) -> bool:
        """Whether its rows have no metric name."""
        return self.function not in KEEP_NAMES or any(map(_drops_name, self.chain))

    @property
    def is_extensible(self) -> bool:
        """Whether a link or an aggregation may follow. Not after a name was dropped that may have told two series
        apart: such rows may have to be merged, or be an error, and they may lie in several shards.
        """
        return self.grouping is None and (self.name_is_fixed or not self.drops_name)

    def with_link(self, link: Link) -> "Fragment":
        """With one more link."""
        return replace(self, chain=(*self.chain, link))

    @property
    def first(self) -> int:
        """The first moment whose samples count."""
        return self.ends.start - self.window + 1

    @property
    def last(self) -> int:
        """The last one."""
        return self.ends.end


@dataclass(frozen=True, slots=True)
class SamplesFragment:
    """The samples themselves, from `first` to `last`."""

    matchers: tuple[Matcher, ...]
    first: int
    last: int
    pushed: tuple[Matcher, ...] = field(default=(), compare=False)


AnyFragment = Fragment | SamplesFragment


def fixed_name(matchers: tuple[Matcher, ...]) -> str | None:
    """The only metric name that matchers let pass, if one of them names it."""
    return next((one.value for one in matchers if one.label == METRIC_NAME and one.op is MatchOp.EQUAL), None)


def per_step(parameter: Parameter, count: int) -> F64s:
    """A number for each step."""
    return np.full(count, parameter[0]) if len(parameter) == 1 else np.array(parameter)


def _drops_name(link: Link) -> bool:
    match link:
        case OperatorLink(operator=operator, returns_bool=returns_bool):
            return returns_bool or not operator.is_comparison
        case _:
            return True
