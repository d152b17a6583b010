"""Evaluates a query from its text to its result, except for reading samples: the caller evaluates the fragments.

prepared = prepare(text, times)
fetched = {fragment: ... for fragment in prepared.fragments}
result = evaluate(prepared, fetched)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from strandline.index.key_bytes import label_order, take_keys
from strandline.promql.annotations import NONE, Annotations
from strandline.promql.conversions import vector as to_vector
from strandline.promql.errors import TooManyStepsError, parse_error
from strandline.promql.evaluation.budget import Budget
from strandline.promql.evaluation.evaluator import Evaluator, FragmentValue
from strandline.promql.evaluation.results import Result
from strandline.promql.evaluation.rows import Points, points
from strandline.promql.expressions import Expression, type_of
from strandline.promql.go_text import as_utf8
from strandline.promql.parser import parse
from strandline.promql.plan import nodes
from strandline.promql.plan.fragment_codec import MAX_STEPS
from strandline.promql.plan.fragments import AnyFragment
from strandline.promql.plan.narrowing import split_narrowed
from strandline.promql.plan.nodes import steps
from strandline.promql.plan.planning import plan
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.value_types import ValueType
from strandline.promql.values import Samples, Scalar, Text, Vector

# The limit for the steps of all parts of a query together, as a multiple of the limit for one part.
_MAX_TOTAL_STEPS_FACTOR = 16


@dataclass(frozen=True, slots=True)
class Prepared:
    """A parsed and planned query. It can be evaluated when the results of its fragments are known."""

    text: str
    expression: Expression
    times: QueryTimes
    fragments: tuple[AnyFragment, ...]
    rest: nodes.Node


def prepare(
    text: str, times: QueryTimes, *, parser: Callable[[str], Expression] = parse, max_steps: int = MAX_STEPS
) -> Prepared:
    """Parse, check and plan. Raises `ParseError`, and `TooManyStepsError` if a part has more than `max_steps`."""
    expression = parser(text)
    kind = type_of(expression)
    if not times.is_instant and kind not in (ValueType.SCALAR, ValueType.VECTOR):
        fault = f'invalid expression type "{kind.display_name}" for range query, must be Scalar or instant Vector'
        raise parse_error(text, expression.span, fault)
    root = plan(expression, times, query=text)
    # Before the plan is split, because splitting computes constants for each step.
    counts = list(steps(root))
    if max(counts) > max_steps or sum(counts) > _MAX_TOTAL_STEPS_FACTOR * max_steps:
        raise TooManyStepsError(max(counts), sum(counts), max_steps)
    split = split_narrowed(root)
    return Prepared(text, expression, times, split.fragments, split.rest)


def evaluate(
    prepared: Prepared,
    fetched: Mapping[AnyFragment, FragmentValue],
    annotations: Annotations = NONE,
    check: Callable[[], None] = lambda: None,
    budget: Budget | None = None,
) -> Result:
    """The result, from the results and annotations of the fragments. `check` and `budget` raise to end the evaluation.

    Raises `EvaluationError`.
    """
    evaluator = Evaluator(fetched, check, annotations, budget)
    times, rest = prepared.times, prepared.rest
    match rest:
        case nodes.Samples():
            found = evaluator.samples(rest)
            evaluator.budget.hold(evaluator.cells, len(found.value))
            return Result(ValueType.MATRIX, times.start, _in_order(found), annotations=evaluator.annotations)
        case nodes.SubqueryPoints(inner=inner, grid=grid):
            value = evaluator.evaluate(inner)
        case _:
            value, grid = evaluator.evaluate(rest), times.grid
    is_matrix = not times.is_instant or isinstance(rest, nodes.SubqueryPoints)
    match value:
        case Text(value=text):
            return Result(ValueType.STRING, times.start, text=as_utf8(text), annotations=evaluator.annotations)
        case Scalar(values=values) if not is_matrix:
            return Result(ValueType.SCALAR, times.start, number=float(values[0]), annotations=evaluator.annotations)
        case Scalar():
            vector = to_vector(value)
        case Vector():
            vector = value
    kind = ValueType.MATRIX if is_matrix else ValueType.VECTOR
    evaluator.budget.hold(evaluator.cells, vector.values.size)
    made = points(vector, grid, in_label_order=is_matrix)
    return Result(kind, times.start, made, annotations=evaluator.annotations)


def _in_order(samples: Samples) -> Points:
    """The series that have samples, in the order of their labels."""
    counts = np.diff(samples.first_sample)
    indices = np.flatnonzero(counts)
    keys = take_keys(samples.keys, indices)
    order = label_order(keys)
    indices = indices[order]
    starts, counts = samples.first_sample[indices], counts[indices]
    first = np.zeros(len(indices) + 1, dtype=np.int64)
    np.cumsum(counts, out=first[1:])
    rows = np.repeat(starts - first[:-1], counts) + np.arange(int(first[-1]))
    return Points(take_keys(keys, order), first, samples.time[rows], samples.value[rows])
