"""Describes the plan of a prepared query for users: what the shards evaluate, and what the front computes. Pure."""

from dataclasses import dataclass

from strandline.index.matchers import Matcher, MatchOp
from strandline.index.selectors import METRIC_NAME
from strandline.promql.durations import printed_milliseconds
from strandline.promql.engine import Prepared
from strandline.promql.expressions import Cardinality, Matching, Span, VectorSelector
from strandline.promql.go_text import plain_number, quoted
from strandline.promql.plan import nodes
from strandline.promql.plan.fragments import (
    LATEST,
    AnyFragment,
    Fragment,
    Grouping,
    Link,
    MapLink,
    NegateLink,
    OperatorLink,
    Parameter,
)
from strandline.promql.plan.splitting import samples_fragment
from strandline.promql.printing import print_expression, print_matcher
from strandline.promql.values import Grid


@dataclass(frozen=True, slots=True)
class FrontNode:
    """An operation of the front, whose operands are `children`. `fragment` is the number of the fragment that it reads,
    from 1; 0 if it reads none.
    """

    operation: str
    children: tuple["FrontNode", ...] = ()
    fragment: int = 0


@dataclass(frozen=True, slots=True)
class ShardFragment:
    """What every shard evaluates over its own series. `first` and `last` are the times of the samples that are read, in
    milliseconds. `returns` is what a shard returns to the front. Parts that a fragment lacks are empty.
    """

    number: int
    selector: str
    first: int
    last: int
    steps: int
    window: str
    chain: tuple[str, ...]
    aggregation: str
    returns: str
    pushed: tuple[str, ...] = ()
    """Matchers of the selector that come from the left side of `and` or `unless`."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The description of a plan."""

    front: FrontNode
    fragments: tuple[ShardFragment, ...]


def explain(prepared: Prepared) -> Explanation:
    """Describe the plan of a prepared query."""
    numbers = {fragment: number for number, fragment in enumerate(prepared.fragments, 1)}
    fragments = tuple(_fragment(number, fragment) for fragment, number in numbers.items())
    return Explanation(_Front(numbers).node(prepared.rest), fragments)


class _Front:
    def __init__(self, numbers: dict[AnyFragment, int]) -> None:
        self._numbers = numbers

    def node(self, node: nodes.Node) -> FrontNode:
        number = 0
        if isinstance(node, nodes.Fetched):
            number = self._numbers[node.fragment]
        elif isinstance(node, nodes.Window | nodes.Samples):
            number = self._numbers[samples_fragment(node)]
        return FrontNode(_operation(node), tuple(map(self.node, nodes.children(node))), number)


def _operation(node: nodes.Node) -> str:  # noqa: PLR0911, PLR0912 - one for each kind
    match node:
        case nodes.Number(value=value):
            return plain_number(value)
        case nodes.String(value=value):
            return quoted(value)
        case nodes.Time():
            return "time()"
        case nodes.Fetched(fragment=fragment):
            return "merge the partial results" if fragment.grouping is not None else "collect the series"
        case nodes.Select():
            return "newest sample"
        case nodes.Window(function=function, range=length):
            return f"{function} over {printed_milliseconds(length)} of the samples"
        case nodes.SubqueryWindow(function=function, range=length, grid=grid):
            return f"{function} over {printed_milliseconds(length)} of a subquery {_every(grid)}"
        case nodes.Samples():
            return "the samples themselves"
        case nodes.SubqueryPoints(grid=grid):
            return f"the points of a subquery {_every(grid)}"
        case nodes.Map(function=function) | nodes.Call(function=function):
            return f"{function}()"
        case nodes.Negate():
            return "negate"
        case nodes.Aggregate():
            return _grouped(node.aggregator.value, node.labels, is_without=node.is_without)
        case nodes.ScalarOperation(operator=operator):
            return f"{operator} of two scalars"
        case nodes.VectorScalarOperation(operator=operator, returns_bool=returns_bool, scalar_is_left=is_left):
            sides = "a scalar and a vector" if is_left else "a vector and a scalar"
            return f"{operator}{' bool' if returns_bool else ''} of {sides}"
        case nodes.VectorOperation(operator=operator, returns_bool=returns_bool, matching=matching):
            return f"{operator}{' bool' if returns_bool else ''} of two vectors, {_matched(matching)}"
        case nodes.Repeat(count=count):
            return f"evaluate once, for all {count:,} steps"


def _fragment(number: int, fragment: AnyFragment) -> ShardFragment:
    selector = _selector(fragment.matchers)
    pushed = tuple(map(print_matcher, fragment.pushed))
    if not isinstance(fragment, Fragment):
        return ShardFragment(number, selector, fragment.first, fragment.last, 0, "", (), "", "samples", pushed)
    grouping = fragment.grouping
    return ShardFragment(
        number,
        selector,
        fragment.first,
        fragment.last,
        # The value of a selector with @ is the same at all steps.
        fragment.ends.count if fragment.ends.step else 1,
        _window(fragment),
        tuple(map(_link, fragment.chain)),
        "" if grouping is None else _aggregation(grouping),
        "series" if grouping is None else "a partial result of each group",
        pushed,
    )


def _selector(matchers: tuple[Matcher, ...]) -> str:
    names = [one.value for one in matchers if one.label == METRIC_NAME and one.op is MatchOp.EQUAL]
    plain = names[0] if len(names) == 1 and names[0].replace(":", "_").isidentifier() and names[0].isascii() else ""
    return print_expression(VectorSelector(plain, matchers, Span(0, 0)))


def _window(fragment: Fragment) -> str:
    length = printed_milliseconds(fragment.window)
    if fragment.function == LATEST:
        return f"newest sample of the last {length}"
    parameters = "".join(f", {_number(one)}" for one in fragment.parameters)
    return f"{fragment.function} over {length}{parameters}"


def _link(link: Link) -> str:
    match link:
        case MapLink(function=function, parameters=parameters):
            return f"{function}({', '.join(['value', *map(_number, parameters)])})"
        case NegateLink():
            return "-value"
        case OperatorLink(operator=operator, scalar=scalar, scalar_is_left=is_left, returns_bool=returns_bool):
            text = f"{operator}{' bool' if returns_bool else ''}"
            return f"{_number(scalar)} {text} value" if is_left else f"value {text} {_number(scalar)}"


def _aggregation(grouping: Grouping) -> str:
    text = _grouped(grouping.aggregator.value, grouping.labels, is_without=grouping.is_without)
    match grouping.parameter:
        case None:
            return text
        case str() as label:
            return f"{text}, {quoted(label)}"
        case parameter:
            return f"{text}, {_number(parameter)}"


def _grouped(aggregator: str, labels: tuple[str, ...], *, is_without: bool) -> str:
    if not labels and not is_without:
        return aggregator
    return f"{aggregator} {'without' if is_without else 'by'} ({', '.join(labels)})"


def _matched(matching: Matching) -> str:
    text = f"{'on' if matching.is_on else 'ignoring'} ({', '.join(matching.labels)})"
    shape = "" if matching.cardinality is Cardinality.MANY_TO_MANY else f"{matching.cardinality}, "
    include = f", with {', '.join(matching.include)}" if matching.include else ""
    return f"{shape}{text}{include}"


def _number(parameter: Parameter) -> str:
    return plain_number(parameter[0]) if len(parameter) == 1 else "a number for each step"


def _every(grid: Grid) -> str:
    return f"every {printed_milliseconds(grid.step)}, {grid.count:,} steps"
