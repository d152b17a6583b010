"""The nodes of a plan, a tree of operations. Each node is evaluated for the steps of a known grid. Times are
milliseconds.

The leaves `Select`, `Window` and `Samples` read samples. `ends` are the timestamps at which the windows of a leaf end:
the steps after `offset` and `@`. With `@`, its step is 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from strandline.index.matchers import Matcher
from strandline.promql.expressions import Aggregator, Matching, Operator, Span
from strandline.promql.plan.fragments import Fragment
from strandline.promql.values import Grid


@dataclass(frozen=True, slots=True)
class Number:
    """A constant scalar."""

    value: float
    count: int


@dataclass(frozen=True, slots=True)
class String:
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class Time:
    """`time()`: a scalar with the evaluation timestamp of each step in seconds."""

    grid: Grid


@dataclass(frozen=True, slots=True)
class Select:
    """The newest sample of each series in (end - lookback, end]: its value, or with `returns_time` its timestamp in
    seconds. `times` are the evaluation timestamps.
    """

    matchers: tuple[Matcher, ...]
    ends: Grid
    lookback: int
    times: Grid
    returns_time: bool = False
    pushed: tuple[Matcher, ...] = field(default=(), compare=False)
    """The matchers that were pushed from the left side of `and` or `unless`."""


@dataclass(frozen=True, slots=True)
class Window:
    """A function of each series' samples in (end - range, end]. `times` are the evaluation timestamps, which
    `predict_linear` needs.
    """

    function: str
    matchers: tuple[Matcher, ...]
    ends: Grid
    range: int
    parameters: tuple["Node", ...]
    times: Grid
    span: Span
    pushed: tuple[Matcher, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class SubqueryWindow:
    """A function over a subquery: `Window` over the values of `inner` at the steps of `grid`."""

    function: str
    inner: "Node"
    grid: Grid
    ends: Grid
    range: int
    parameters: tuple["Node", ...]
    times: Grid
    span: Span


@dataclass(frozen=True, slots=True)
class Samples:
    """The raw samples of a range selector. Only as a complete instant query."""

    matchers: tuple[Matcher, ...]
    end: int
    range: int


@dataclass(frozen=True, slots=True)
class SubqueryPoints:
    """The points of a subquery. Only as a complete instant query."""

    inner: "Node"
    grid: Grid


@dataclass(frozen=True, slots=True)
class Map:
    """A function of single values with scalar parameters."""

    function: str
    inner: "Node"
    parameters: tuple["Node", ...]
    grid: Grid


@dataclass(frozen=True, slots=True)
class Call:
    """A function of complete vectors: labels, sorting, classic histograms, `vector`, `scalar` and `absent`."""

    function: str
    arguments: tuple["Node", ...]
    grid: Grid
    span: Span
    absent_labels: tuple[tuple[str, str], ...] = ()
    """The labels of the result of `absent`."""
    argument_spans: tuple[Span, ...] = ()
    """The positions of the arguments, for annotations."""


@dataclass(frozen=True, slots=True)
class Negate:
    """The negated values of a vector or scalar."""

    inner: "Node"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregation over series. `parameter` is None, a scalar, or the string of `count_values`. `span` is that of the
    parameter if there is one, because annotations of the aggregation concern it.
    """

    aggregator: Aggregator
    inner: "Node"
    parameter: "Node | None"
    labels: tuple[str, ...]
    is_without: bool
    count: int
    span: Span


@dataclass(frozen=True, slots=True)
class ScalarOperation:
    """A binary operator between two scalars."""

    operator: Operator
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class VectorScalarOperation:
    """A binary operator between a vector and a scalar."""

    operator: Operator
    vector: "Node"
    scalar: "Node"
    returns_bool: bool
    scalar_is_left: bool = False


@dataclass(frozen=True, slots=True)
class VectorOperation:
    """A binary operator between two vectors, with vector matching."""

    operator: Operator
    left: "Node"
    right: "Node"
    matching: Matching
    returns_bool: bool
    count: int
    span: Span


@dataclass(frozen=True, slots=True)
class Repeat:
    """The value of `inner`, evaluated for one step and repeated for `count` steps."""

    inner: "Node"
    count: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fragment. Replaces the nodes that the fragment evaluates."""

    fragment: Fragment


Node = (
    Number
    | String
    | Time
    | Select
    | Window
    | SubqueryWindow
    | Samples
    | SubqueryPoints
    | Map
    | Call
    | Negate
    | Aggregate
    | ScalarOperation
    | VectorScalarOperation
    | VectorOperation
    | Repeat
    | Fetched
)


def children(node: Node) -> tuple[Node, ...]:  # noqa: PLR0911 - one for each kind
    """The operands of a node."""
    match node:
        case Window(parameters=parameters):
            return parameters
        case SubqueryWindow(inner=inner, parameters=parameters) | Map(inner=inner, parameters=parameters):
            return (inner, *parameters)
        case SubqueryPoints(inner=inner) | Repeat(inner=inner) | Negate(inner=inner):
            return (inner,)
        case Call(arguments=arguments):
            return arguments
        case Aggregate(inner=inner, parameter=parameter):
            return (inner,) if parameter is None else (inner, parameter)
        case ScalarOperation(left=left, right=right) | VectorOperation(left=left, right=right):
            return (left, right)
        case VectorScalarOperation(vector=vector, scalar=scalar):
            return (vector, scalar)
        case _:
            return ()


def steps(node: Node) -> Iterator[int]:
    """The number of steps of each node of a plan."""
    match node:
        case Select(ends=grid) | Window(ends=grid) | Time(grid=grid) | SubqueryPoints(grid=grid) | Call(grid=grid):
            yield grid.count
        case SubqueryWindow(grid=grid, ends=ends):
            yield max(grid.count, ends.count)
        case Number(count=count) | Repeat(count=count):
            yield count
        case Fetched(fragment=fragment):
            yield fragment.ends.count
        case _:
            yield 1
    for child in children(node):
        yield from steps(child)


def uses_absent(node: Node) -> bool:
    """Whether the plan contains `absent` or `absent_over_time`, whose results depend on series being absent."""
    return (isinstance(node, Call) and node.function == "absent") or any(map(uses_absent, children(node)))
