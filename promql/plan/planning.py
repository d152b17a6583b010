"""Plans an expression for the times of a query. Pure."""

from strandline.index.matchers import Matcher
from strandline.promql.absence import absent_labels
from strandline.promql.durations import milliseconds
from strandline.promql.elementwise import ELEMENTWISE
from strandline.promql.expressions import (
    Aggregation,
    At,
    Binary,
    Call,
    Duration,
    Expression,
    MatrixSelector,
    Negation,
    NumberLiteral,
    Parentheses,
    StringLiteral,
    Subquery,
    VectorSelector,
    type_of,
)
from strandline.promql.go_text import as_utf8
from strandline.promql.plan import nodes
from strandline.promql.plan.invariance import is_invariant, is_worth_hoisting, unwrapped
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.value_types import ValueType
from strandline.promql.values import Grid


def plan(expression: Expression, times: QueryTimes, *, query: str) -> nodes.Node:
    """Plan an expression; `query` is its text. Raises `ParseError` for a duration that is invalid in this query."""
    root = unwrapped(expression)
    planner = _Planner(times, query)
    match root:
        case MatrixSelector(selector=selector, range=length):
            ends = planner.ends(times.grid, selector.offset, selector.at)
            return nodes.Samples(_matchers(selector), ends.start, planner.duration(length))
        case Subquery():
            _, grid = planner.subquery(root, times.grid)
            return nodes.SubqueryPoints(planner.inner_of(root, grid), grid)
        case _:
            return planner.hoisted(root, times.grid)


class _Planner:
    def __init__(self, times: QueryTimes, query: str) -> None:
        self._times, self._query = times, query

    def duration(self, duration: Duration, *, may_be_negative: bool = False) -> int:
        times = self._times
        return milliseconds(
            duration,
            query=self._query,
            step_ms=times.step,
            range_ms=times.end - times.start,
            may_be_negative=may_be_negative,
        )

    def ends(self, grid: Grid, offset: Duration | None, at: At | None) -> Grid:
        """The timestamps at which windows end, for the steps of a grid."""
        back = 0 if offset is None else self.duration(offset, may_be_negative=True)
        if at is None:
            return Grid(grid.start - back, grid.step, grid.count)
        return Grid(self._times.resolve_at(at) - back, 0, grid.count)

    def subquery(self, expression: Subquery, grid: Grid) -> tuple[Grid, Grid]:
        """The timestamps at which the windows of a subquery end, and its steps: multiples of its own step, from the
        first one after the start of the first window.
        """
        ends = self.ends(grid, expression.offset, expression.at)
        step = self._times.subquery_step if expression.step is None else self.duration(expression.step)
        first = ((ends.start - self.duration(expression.range)) // step + 1) * step
        return ends, Grid(first, step, max(0, (ends.end - first) // step + 1))

    def inner_of(self, expression: Subquery, grid: Grid) -> nodes.Node:
        if not is_invariant(expression.inner) or grid.count <= 1:
            return self._planned(expression.inner, grid)
        return nodes.Repeat(self._planned(expression.inner, _one_step(grid)), grid.count)

    def hoisted(self, expression: Expression, grid: Grid) -> nodes.Node:
        """Plan an expression. It is evaluated once if it is step-invariant."""
        if grid.count <= 1 or not is_worth_hoisting(expression):
            return self._planned(expression, grid)
        return nodes.Repeat(self._planned(expression, _one_step(grid)), grid.count)

    def _planned(self, expression: Expression, grid: Grid) -> nodes.Node:  # noqa: PLR0911 - one for each kind
        match expression:
            case NumberLiteral(value=value):
                return nodes.Number(value, grid.count)
            case StringLiteral(value=text):
                return nodes.String(text)
            case Parentheses(inner=inner):
                return self._planned(inner, grid)
            case VectorSelector():
                ends = self.ends(grid, expression.offset, expression.at)
                return nodes.Select(_matchers(expression), ends, self._times.lookback, grid)
            case MatrixSelector() | Subquery():
                raise TypeError("a range vector is only valid as a function's argument or as the complete query")
            case Negation(inner=inner, is_plus=is_plus):
                planned = self._planned(inner, grid)
                return planned if is_plus else nodes.Negate(planned)
            case Aggregation():
                return self._aggregate(expression, grid)
            case Binary():
                return self._binary(expression, grid)
            case Call():
                return self._call(expression, grid)

    def _aggregate(self, expression: Aggregation, grid: Grid) -> nodes.Node:
        inner = self._planned(unwrapped(expression.inner), grid)
        parameter = None
        if expression.parameter is not None:
            parameter = self._planned(unwrapped(expression.parameter), grid)
        labels = tuple(sorted(set(expression.labels)))
        # Warnings are about the parameter.
        span = expression.span if expression.parameter is None else expression.parameter.span
        return nodes.Aggregate(expression.aggregator, inner, parameter, labels, expression.is_without, grid.count, span)

    def _binary(self, expression: Binary, grid: Grid) -> nodes.Node:
        # If both sides are invariant, so is the operation, and the caller has already hoisted it.
        once = is_invariant(expression)
        side = self._planned if once else self.hoisted
        left, right = side(expression.left, grid), side(expression.right, grid)
        kinds = (type_of(expression.left), type_of(expression.right))
        operator, returns_bool = expression.operator, expression.returns_bool
        match kinds:
            case (ValueType.SCALAR, ValueType.SCALAR):
                return nodes.ScalarOperation(operator, left, right)
            case (ValueType.VECTOR, ValueType.SCALAR):
                return nodes.VectorScalarOperation(operator, left, right, returns_bool)
            case (ValueType.SCALAR, ValueType.VECTOR):
                return nodes.VectorScalarOperation(operator, right, left, returns_bool, scalar_is_left=True)
        if expression.matching is None:
            raise TypeError("an operator between vectors has no matching")
        return nodes.VectorOperation(
            operator, left, right, expression.matching, returns_bool, grid.count, expression.span
        )

    def _call(self, expression: Call, grid: Grid) -> nodes.Node:
        name, arguments = expression.function.name, tuple(map(unwrapped, expression.arguments))
        ranged = next((one for one in arguments if isinstance(one, MatrixSelector | Subquery)), None)
        if ranged is not None:
            return self._window(expression, ranged, arguments, grid)
        if name == "time":
            return nodes.Time(grid)
        if name == "timestamp" and isinstance(arguments[0], VectorSelector):
            selector = arguments[0]
            ends = self.ends(grid, selector.offset, selector.at)
            return nodes.Select(_matchers(selector), ends, self._times.lookback, grid, returns_time=True)
        side = self._planned if is_invariant(expression) else self.hoisted
        planned = tuple(side(one, grid) for one in arguments)
        if name in ELEMENTWISE:
            # Without an argument, date functions use the evaluation timestamp.
            inner = planned[0] if planned else nodes.Call("vector", (nodes.Time(grid),), grid, expression.span)
            return nodes.Map(name, inner, planned[1:], grid)
        labels = _absent_labels(arguments[0]) if name == "absent" else ()
        spans = tuple(one.span for one in arguments)
        return nodes.Call(name, planned, grid, expression.span, labels, spans)

    def _window(
        self, expression: Call, ranged: MatrixSelector | Subquery, arguments: tuple[Expression, ...], grid: Grid
    ) -> nodes.Node:
        name, length = expression.function.name, self.duration(ranged.range)
        parameters = tuple(self.hoisted(one, grid) for one in arguments if one is not ranged)
        function = "present_over_time" if name == "absent_over_time" else name
        # Annotations of a function concern its first argument: its range or its parameter.
        span = arguments[0].span
        planned: nodes.Node
        if isinstance(ranged, MatrixSelector):
            ends = self.ends(grid, ranged.selector.offset, ranged.selector.at)
            matchers = _matchers(ranged.selector)
            planned = nodes.Window(function, matchers, ends, length, parameters, grid, span)
        else:
            ends, inner_grid = self.subquery(ranged, grid)
            inner = self.inner_of(ranged, inner_grid)
            planned = nodes.SubqueryWindow(function, inner, inner_grid, ends, length, parameters, grid, span)
        if name == "absent_over_time":
            return nodes.Call("absent", (planned,), grid, expression.span, _absent_labels(ranged))
        return planned


def _matchers(selector: VectorSelector) -> tuple[Matcher, ...]:
    """A selector's matchers, as UTF-8: no series has other bytes, and shards are not sent any."""
    return tuple(Matcher(as_utf8(one.label), one.op, as_utf8(one.value)) for one in selector.matchers)


def _absent_labels(expression: Expression) -> tuple[tuple[str, str], ...]:
    return tuple((as_utf8(name), as_utf8(value)) for name, value in absent_labels(expression).items())


def _one_step(grid: Grid) -> Grid:
    return Grid(grid.start, grid.step, 1)
