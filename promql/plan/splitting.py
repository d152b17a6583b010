"""Splits a plan into fragments, which shards evaluate next to their samples, and the rest. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from strandline.promql.arithmetic import scalar_with_scalar
from strandline.promql.plan import nodes
from strandline.promql.plan.fragments import (
    LATEST,
    TIMESTAMP,
    AnyFragment,
    Fragment,
    Grouping,
    MapLink,
    NegateLink,
    OperatorLink,
    Parameter,
    SamplesFragment,
    per_step,
)
from strandline.promql.plan.nodes import Fetched, Node


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """The distinct fragments, and the rest, in which `Fetched` is the result of a fragment. A `Window` or `Samples` in
    the rest reads the samples of its `samples_fragment`.
    """

    fragments: tuple[AnyFragment, ...]
    rest: Node


def split_plan(plan: Node) -> SplitPlan:
    """Move as much of a plan as possible into fragments."""
    rest = _split(plan)
    return SplitPlan(tuple(dict.fromkeys(_fragments(rest))), rest)


def samples_fragment(node: nodes.Window | nodes.Samples) -> SamplesFragment:
    """The fragment of samples that a node of the rest reads."""
    if isinstance(node, nodes.Samples):
        return SamplesFragment(node.matchers, node.end - node.range + 1, node.end)
    return SamplesFragment(node.matchers, node.ends.start - node.range + 1, node.ends.end, node.pushed)


def constant(node: Node) -> Parameter | None:  # noqa: PLR0911 - one for each kind
    """The scalar value of a node that reads no samples: one number, or one for each step. None for other nodes."""
    match node:
        case nodes.Number(value=value):
            return (value,)
        case nodes.Time(grid=grid):
            return tuple((grid.timestamps() / 1000).tolist())
        case nodes.Repeat(inner=inner):
            return constant(inner)
        case nodes.Call(function="pi"):
            return (float(np.pi),)
        case nodes.Negate(inner=inner):
            found = constant(inner)
            return None if found is None else tuple(-one for one in found)
        case nodes.ScalarOperation(operator=operator, left=left, right=right):
            one, other = constant(left), constant(right)
            if one is None or other is None:
                return None
            count = max(len(one), len(other))
            return tuple(scalar_with_scalar(operator, per_step(one, count), per_step(other, count)).tolist())
        case _:
            return None


def _split(node: Node) -> Node:  # noqa: PLR0911, PLR0912 - one for each kind
    match node:
        case nodes.Number() | nodes.String() | nodes.Time() | nodes.Samples() | nodes.Fetched():
            return node
        case nodes.Select():
            function = TIMESTAMP if node.returns_time else LATEST
            return Fetched(Fragment(node.matchers, function, node.ends, node.lookback, node.times, pushed=node.pushed))
        case nodes.Window():
            return _window(node)
        case nodes.SubqueryWindow():
            parameters = tuple(map(_split, node.parameters))
            return replace(node, inner=_split(node.inner), parameters=parameters)
        case nodes.SubqueryPoints() | nodes.Repeat():
            return replace(node, inner=_split(node.inner))
        case nodes.Map():
            inner, parameters = _split(node.inner), tuple(map(_split, node.parameters))
            known = [constant(one) for one in parameters]
            if (fragment := _extensible(inner)) and None not in known:
                numbers = tuple(one for one in known if one is not None)
                return Fetched(fragment.with_link(MapLink(node.function, numbers)))
            return replace(node, inner=inner, parameters=parameters)
        case nodes.Call():
            return replace(node, arguments=tuple(map(_split, node.arguments)))
        case nodes.Negate():
            inner = _split(node.inner)
            if fragment := _extensible(inner):
                return Fetched(fragment.with_link(NegateLink()))
            return nodes.Negate(inner)
        case nodes.Aggregate():
            return _aggregate(node)
        case nodes.ScalarOperation() | nodes.VectorOperation():
            return replace(node, left=_split(node.left), right=_split(node.right))
        case nodes.VectorScalarOperation():
            vector, scalar = _split(node.vector), _split(node.scalar)
            number = constant(scalar)
            if (fragment := _extensible(vector)) and number is not None:
                link = OperatorLink(node.operator, number, node.scalar_is_left, node.returns_bool)
                return Fetched(fragment.with_link(link))
            return replace(node, vector=vector, scalar=scalar)


def _window(node: nodes.Window) -> Node:
    parameters = tuple(map(_split, node.parameters))
    known = [constant(one) for one in parameters]
    if None in known:
        return replace(node, parameters=parameters)
    numbers = tuple(one for one in known if one is not None)
    fragment = Fragment(node.matchers, node.function, node.ends, node.range, node.times, numbers, span=node.span)
    return Fetched(replace(fragment, pushed=node.pushed))


def _aggregate(node: nodes.Aggregate) -> Node:
    inner = _split(node.inner)
    parameter = None if node.parameter is None else _split(node.parameter)
    known = (
        parameter.value if isinstance(parameter, nodes.String) else None if parameter is None else constant(parameter)
    )
    fragment = _extensible(inner)
    if fragment is None or (parameter is not None and known is None):
        return replace(node, inner=inner, parameter=parameter)
    grouping = Grouping(node.aggregator, node.labels, node.is_without, known, node.span)
    return Fetched(replace(fragment, grouping=grouping))


def _extensible(node: Node) -> Fragment | None:
    return node.fragment if isinstance(node, Fetched) and node.fragment.is_extensible else None


def _fragments(node: Node) -> Iterator[AnyFragment]:
    match node:
        case Fetched(fragment=fragment):
            yield fragment
        case nodes.Samples() | nodes.Window():
            yield samples_fragment(node)
    for child in nodes.children(node):
        yield from _fragments(child)
