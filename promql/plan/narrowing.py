"""Pushes matchers from the left side of `and` and `unless` to the right side. Pure.

`a{job="x"} and b` keeps a sample of `a` if `b` has a series with the same labels at that step. Each series on the left
has the job "x", so a series of `b` with another job can't match and need not be read. This holds for every label that
is matched on, and for any condition on its value alone.

A matcher is only pushed where no error and no annotation depends on the series that it excludes:

- Not below arithmetic and comparison operators between vectors, where additional series may be an error.
- Not below a function that drops metric names, unless the series are distinct without them.
- Not below a function whose annotations depend on its series, such as `rate` of a metric not named like a counter.
- Not below functions that change labels, and below an aggregation only for its grouping labels.
"""

from dataclasses import replace
from typing import Final

from strandline.index.matchers import Matcher, MatchOp
from strandline.promql.annotations import is_counter_name
from strandline.promql.expressions import Aggregator, Cardinality, Matching, Operator
from strandline.promql.labels import METADATA_LABELS
from strandline.promql.plan import nodes
from strandline.promql.plan.fragments import KEEP_NAMES, fixed_name
from strandline.promql.plan.nodes import Node
from strandline.promql.plan.splitting import SplitPlan, constant, split_plan

Matchers = tuple[Matcher, ...]
_FILTERS: Final = frozenset({Operator.AND, Operator.UNLESS})
# `!=` and `!~` exclude few series: the search would cost more, and reading hardly less.
_SELECTIVE: Final = frozenset({MatchOp.EQUAL, MatchOp.MATCH})
_COUNTER_FUNCTIONS: Final = frozenset({"rate", "increase"})
_RANKING: Final = frozenset({Aggregator.TOPK, Aggregator.BOTTOMK})
_BUCKETS_ARGUMENT: Final = {"histogram_quantile": 1, "histogram_fraction": 2}
_SORT_FUNCTIONS: Final = frozenset({"sort", "sort_desc"})
_LABEL_FUNCTIONS: Final = frozenset({"label_replace", "label_join"})


def split_narrowed(plan: Node) -> SplitPlan:
    """Push matchers and split the plan into fragments. Nothing is pushed if that would result in more fragments: a
    selector that also occurs elsewhere in the query is then read only once.
    """
    parts = split_plan(plan)
    if not _has_filters(plan):
        return parts
    narrow = split_plan(narrowed(plan))
    return narrow if len(narrow.fragments) <= len(parts.fragments) else parts


def narrowed(plan: Node) -> Node:
    """The plan with matchers pushed to the right sides of `and` and `unless`."""
    return _narrow(plan, ())


def _has_filters(node: Node) -> bool:
    if isinstance(node, nodes.VectorOperation) and node.operator in _FILTERS:
        return True
    return any(map(_has_filters, nodes.children(node)))


def _narrow(node: Node, wanted: Matchers) -> Node:  # noqa: PLR0911, PLR0912 - one for each kind
    """The node without some or all of the series that the wanted matchers exclude."""
    match node:
        case nodes.Select():
            return _with_pushed(node, wanted if not node.returns_time or _is_distinct(node) else ())
        case nodes.Window():
            taken = replace(node, parameters=_narrow_all(node.parameters))
            return _with_pushed(taken, wanted if _may_lose_series(node) else ())
        case nodes.SubqueryWindow(inner=inner):
            parameters = _narrow_all(node.parameters)
            return replace(node, inner=_narrow(inner, wanted if _may_lose_series(node) else ()), parameters=parameters)
        case nodes.Map(inner=inner):
            parameters = _narrow_all(node.parameters)
            return replace(node, inner=_narrow(inner, wanted if _is_distinct(inner) else ()), parameters=parameters)
        case nodes.Negate(inner=inner):
            return nodes.Negate(_narrow(inner, wanted if _is_distinct(inner) else ()))
        case nodes.VectorScalarOperation(vector=vector, scalar=scalar):
            vector = _narrow(vector, wanted if _is_distinct(vector) else ())
            return replace(node, vector=vector, scalar=_narrow(scalar, ()))
        case nodes.Aggregate(inner=inner, parameter=parameter):
            inner = _narrow(inner, tuple(one for one in wanted if _is_grouped_by(node, one.label)))
            return replace(node, inner=inner, parameter=None if parameter is None else _narrow(parameter, ()))
        case nodes.VectorOperation():
            return _operation(node, wanted)
        case nodes.ScalarOperation(left=left, right=right):
            return replace(node, left=_narrow(left, ()), right=_narrow(right, ()))
        case nodes.Call(function=function, arguments=arguments):
            return replace(
                node, arguments=tuple(_narrow(one, wanted if function in _SORT_FUNCTIONS else ()) for one in arguments)
            )
        case nodes.Repeat(inner=inner):
            return replace(node, inner=_narrow(inner, wanted))
        case nodes.SubqueryPoints(inner=inner):
            return replace(node, inner=_narrow(inner, ()))
        case _:
            return node


def _narrow_all(parts: tuple[Node, ...]) -> tuple[Node, ...]:
    """Narrow parts on which no matchers are imposed from above."""
    return tuple(_narrow(one, ()) for one in parts)


def _with_pushed(node: nodes.Select | nodes.Window, wanted: Matchers) -> Node:
    pushed = tuple(one for one in wanted if one not in node.matchers)
    if not pushed:
        return node
    # In the order that they have if they are in the query's text, before the name: equal selectors are read once.
    return replace(node, matchers=(*node.matchers[:-1], *pushed, *node.matchers[-1:]), pushed=pushed)


def _operation(node: nodes.VectorOperation, wanted: Matchers) -> Node:
    left, right, matching = node.left, node.right, node.matching
    if node.operator in _FILTERS:
        # The conditions of the left side before it was narrowed; those that were pushed to it are in `wanted`.
        conditions = _matched((*wanted, *_guaranteed(left)), matching)
        return replace(node, left=_narrow(left, wanted), right=_narrow(right, tuple(dict.fromkeys(conditions))))
    if node.operator is Operator.OR:
        # Matchers on other labels might exclude a series of the left side that hides a series of the right side.
        return replace(node, left=_narrow(left, _matched(wanted, matching)), right=_narrow(right, wanted))
    return replace(node, left=_narrow(left, ()), right=_narrow(right, ()))


def _matched(matchers: Matchers, matching: Matching) -> Matchers:
    """The matchers of labels that are matched on."""
    return tuple(one for one in matchers if (one.label in matching.labels) == matching.is_on)


def _may_lose_series(node: nodes.Window | nodes.SubqueryWindow) -> bool:
    """Whether series may be excluded below a function over ranges: no error and no annotation depends on them."""
    name = fixed_name(node.matchers) if isinstance(node, nodes.Window) else None
    if node.function in _COUNTER_FUNCTIONS and (name is None or not is_counter_name(name)):
        return False
    if node.function == "quantile_over_time" and not _is_valid_quantile(node.parameters[0]):
        return False
    is_distinct = name is not None if isinstance(node, nodes.Window) else _is_distinct(node.inner)
    return is_distinct or node.function in KEEP_NAMES


def _is_valid_quantile(parameter: Node | None) -> bool:
    """Whether it is a constant quantile between 0 and 1, about which there is no warning."""
    numbers = None if parameter is None else constant(parameter)
    return numbers is not None and all(0 <= one <= 1 for one in numbers)


def _is_distinct(node: Node) -> bool:  # noqa: PLR0911 - one for each kind
    """Whether the series of a node are known to be distinct without metric names."""
    match node:
        case nodes.Select(matchers=matchers) | nodes.Window(matchers=matchers):
            return fixed_name(matchers) is not None
        case nodes.Aggregate(aggregator=aggregator, labels=labels, is_without=is_without, inner=inner):
            if aggregator in _RANKING:
                return _is_distinct(inner)
            return is_without or not set(METADATA_LABELS) & set(labels)
        case nodes.SubqueryWindow(inner=inner) | nodes.Map(inner=inner) | nodes.Negate(inner=inner):
            return _is_distinct(inner)
        case nodes.Repeat(inner=inner) | nodes.VectorScalarOperation(vector=inner):
            return _is_distinct(inner)
        case nodes.VectorOperation(operator=operator, left=left):
            return operator in _FILTERS and _is_distinct(left)
        case nodes.Call(function=function, arguments=arguments):
            return function in _SORT_FUNCTIONS and _is_distinct(arguments[0])
        case _:
            return False


def _is_grouped_by(node: nodes.Aggregate, label: str) -> bool:
    """Whether all series of a group, and the group itself, have the same value of a label."""
    if node.aggregator is Aggregator.COUNT_VALUES and isinstance(node.parameter, nodes.String):
        if label == node.parameter.value:
            return False
    elif node.aggregator is Aggregator.QUANTILE and not _is_valid_quantile(node.parameter):
        return False
    return (label in node.labels) is not node.is_without


def _guaranteed(node: Node) -> Matchers:  # noqa: PLR0911 - one for each kind
    """Matchers of selectors that all series of a node satisfy. Matchers on metric names are excluded, because functions
    drop the name.
    """
    match node:
        case nodes.Select(matchers=matchers) | nodes.Window(matchers=matchers):
            return tuple(one for one in matchers if one.op in _SELECTIVE and one.label not in METADATA_LABELS)
        case nodes.SubqueryWindow(inner=inner) | nodes.Map(inner=inner) | nodes.Negate(inner=inner):
            return _guaranteed(inner)
        case nodes.Repeat(inner=inner) | nodes.VectorScalarOperation(vector=inner):
            return _guaranteed(inner)
        case nodes.Aggregate(aggregator=aggregator, inner=inner):
            if aggregator in _RANKING:
                return _guaranteed(inner)
            return tuple(one for one in _guaranteed(inner) if _keeps_label(node, one.label))
        case nodes.VectorOperation():
            return _guaranteed_by_operation(node)
        case nodes.Call(function=function, arguments=arguments):
            return _guaranteed_by_call(function, arguments)
        case _:
            return ()


def _keeps_label(node: nodes.Aggregate, label: str) -> bool:
    is_written = isinstance(node.parameter, nodes.String) and node.parameter.value == label
    return not is_written and (label in node.labels) is not node.is_without


def _guaranteed_by_operation(node: nodes.VectorOperation) -> Matchers:
    left, right, matching = _guaranteed(node.left), _guaranteed(node.right), node.matching
    match node.operator:
        case Operator.AND:
            return left + _matched(right, matching)
        case Operator.UNLESS:
            return left
        case Operator.OR:
            return tuple(one for one in left if one in right)
    if matching.cardinality is Cardinality.ONE_TO_ONE:
        return _matched(left + right, matching)
    many, one_side = (right, left) if matching.cardinality is Cardinality.ONE_TO_MANY else (left, right)
    included = tuple(one for one in one_side if one.label in matching.include)
    return tuple(one for one in many if one.label not in matching.include) + _matched(one_side, matching) + included


def _guaranteed_by_call(function: str, arguments: tuple[Node, ...]) -> Matchers:
    if function in _SORT_FUNCTIONS:
        return _guaranteed(arguments[0])
    if function in _BUCKETS_ARGUMENT:
        return tuple(one for one in _guaranteed(arguments[_BUCKETS_ARGUMENT[function]]) if one.label != "le")
    target = arguments[1] if function in _LABEL_FUNCTIONS else None
    if isinstance(target, nodes.String):
        return tuple(one for one in _guaranteed(arguments[0]) if one.label != target.value)
    return ()
