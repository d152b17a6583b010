"""A plan: a tree of what is computed, each node for the steps of a grid that is known. Times are milliseconds.

Leaves that read samples are `Select` and `Window`. `ends` says where the windows of a leaf end: the grid of the steps
after `offset` and `@`. A selector that is pinned by `@` has a step of 0 there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from strandline.index.matchers import Matcher
from strandline.promql.expressions import Aggregator, Matching, Operator, Span
from strandline.promql.plan.fragments import Fragment
from strandline.promql.values import Grid


@dataclass(frozen=True, slots=True)
class Number:
    """A constant. Gives a scalar."""

    value: float
    count: int


@dataclass(frozen=True, slots=True)
class String:
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class Time:
    """`time()`: each step's moment in seconds. Gives a scalar."""

    grid: Grid


@dataclass(frozen=True, slots=True)
class Select:
    """The newest sample of each series in (end - lookback, end]: its value, or with `returns_time` its time in seconds.
    `times` are the steps themselves.
    """

    matchers: tuple[Matcher, ...]
    ends: Grid
    lookback: int
    times: Grid
    returns_time: bool = False
    pushed: tuple[Matcher, ...] = field(default=(), compare=False)
    """Those of the matchers that are not the selector's own, but come from the left side of `and` or `unless`."""


@dataclass(frozen=True, slots=True)
class Window:
    """A function of the samples of each series in (end - range, end]. `times` are the steps themselves, from which
    `predict_linear` looks ahead.
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
    """The same over the values of `inner`, which has the steps of `grid`."""

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
    """The samples of a range selector themselves. Only as the whole of an instant query."""

    matchers: tuple[Matcher, ...]
    end: int
    range: int


@dataclass(frozen=True, slots=True)
class SubqueryPoints:
    """The points of a subquery themselves. Only as the whole of an instant query."""

    inner: "Node"
    grid: Grid


@dataclass(frozen=True, slots=True)
class Map:
    """A function of single values, with parameters that are scalars."""

    function: str
    inner: "Node"
    parameters: tuple["Node", ...]
    grid: Grid


@dataclass(frozen=True, slots=True)
class Call:
    """A function of whole vectors: labels, sorting, classic histograms, `vector`, `scalar` and `absent`."""

    function: str
    arguments: tuple["Node", ...]
    grid: Grid
    span: Span
    absent_labels: tuple[tuple[str, str], ...] = ()
    """What the result of `absent` is labelled with."""
    argument_spans: tuple[Span, ...] = ()
    """Where the arguments stand, which annotations may be about."""


@dataclass(frozen=True, slots=True)
class Negate:
    """A vector's or a scalar's values with the other sign."""

    inner: "Node"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregation over series. `parameter` is None, a scalar, or the string of `count_values`. `span` is that of the
    parameter if there is one: what the aggregation has to tell is about that.
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
    """Two scalars."""

    operator: Operator
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class VectorScalarOperation:
    """A vector and a scalar; `scalar_is_left` says which stood where."""

    operator: Operator
    vector: "Node"
    scalar: "Node"
    returns_bool: bool
    scalar_is_left: bool = False


@dataclass(frozen=True, slots=True)
class VectorOperation:
    """Two vectors, joined by labels."""

    operator: Operator
    left: "Node"
    right: "Node"
    matching: Matching
    returns_bool: bool
    count: int
    span: Span


@dataclass(frozen=True, slots=True)
class Repeat:
    """What was evaluated for one step, at each of `count` steps."""

    inner: "Node"
    count: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fragment gives. Stands where the nodes stood that the fragment evaluates."""

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
    """The nodes that a node is computed from."""
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
    """For how many steps each part of a plan is computed."""
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
    """Whether there is an answer just because series are not there: `absent` and `absent_over_time`."""
    return (isinstance(node, Call) and node.function == "absent") or any(map(uses_absent, children(node)))
