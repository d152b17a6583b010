"""Evaluates the rest of a plan over the results of its fragments."""

from collections.abc import Callable, Mapping

import numpy as np

from strandline.arrays import F64s
from strandline.promql import annotations, conversions
from strandline.promql.aggregation.spec import AggregationSpec
from strandline.promql.aggregations import aggregate
from strandline.promql.annotations import Annotations
from strandline.promql.arithmetic import drops_name as operator_drops_name
from strandline.promql.arithmetic import negated, scalar_with_scalar, scalar_with_vector, vector_with_scalar
from strandline.promql.elementwise import evaluate_elementwise
from strandline.promql.evaluation.annotation_collector import AnnotationCollector
from strandline.promql.evaluation.budget import Budget, cells_of
from strandline.promql.evaluation.calls import CALLS, as_scalar, as_vector
from strandline.promql.evaluation.rows import without_names
from strandline.promql.expressions import Aggregator
from strandline.promql.joins import join
from strandline.promql.plan import nodes
from strandline.promql.plan.fragments import AnyFragment, Fragment
from strandline.promql.plan.splitting import samples_fragment
from strandline.promql.values import Samples, Scalar, Text, Value, Vector
from strandline.promql.windows import WINDOW_FUNCTIONS, evaluate_window, samples_of, without_stale

FragmentValue = Vector | Samples
"""The result of a fragment: rows, aggregated if the fragment has a grouping, or samples."""
_KEEP_NAMES = frozenset(name for name, function in WINDOW_FUNCTIONS.items() if function.keeps_name)


class Evaluator:
    """Evaluates one query. `check` is called before each node and may raise to end the evaluation."""

    def __init__(
        self,
        fetched: Mapping[AnyFragment, FragmentValue],
        check: Callable[[], None],
        annotations: Annotations,
        budget: Budget | None = None,
    ) -> None:
        """`annotations` are those of the fragments."""
        self._fetched, self._check = fetched, check
        self.annotations = annotations
        self.budget = budget or Budget()
        self.cells = sum(map(cells_of, fetched.values()))
        """The number of cells held: those of the fragments, and of the operands of unfinished nodes."""
        self.budget.hold(self.cells)

    def evaluate(self, node: nodes.Node) -> Value:
        """The value of a node at each of its steps."""
        self._check()
        before = self.cells
        value = self._value(node)
        if not isinstance(node, nodes.Fetched):
            # The operands are still in memory.
            self._reserve_cells(cells_of(value))
            self.cells = before + cells_of(value)
        return value

    def _reserve_cells(self, cells: int) -> None:
        self.budget.hold(self.cells + cells)

    def _value(self, node: nodes.Node) -> Value:  # noqa: PLR0911, PLR0912 - one for each kind
        match node:
            case nodes.Number(value=number, count=count):
                return Scalar(np.full(count, number))
            case nodes.String(value=text):
                return Text(text)
            case nodes.Time(grid=grid):
                return conversions.time(grid)
            case nodes.Fetched(fragment=fragment):
                return self._fetched_rows(fragment)
            case nodes.Window():
                return self._window(node, without_stale(self._samples(samples_fragment(node))))
            case nodes.SubqueryWindow():
                inner = self._vector(node.inner)
                # Each cell becomes a time and a value.
                self._reserve_cells(2 * inner.values.size + len(inner.keys) * node.ends.count)
                return self._window(node, samples_of(inner, node.grid))
            case nodes.Map():
                return self._map(node)
            case nodes.Negate():
                return self._negate(node)
            case nodes.Aggregate():
                return self._aggregate(node)
            case nodes.ScalarOperation(operator=operator, left=left, right=right):
                return Scalar(scalar_with_scalar(operator, self._scalar(left), self._scalar(right)))
            case nodes.VectorScalarOperation():
                return self._vector_scalar(node)
            case nodes.VectorOperation():
                sides = (self._vector(node.left), self._vector(node.right))
                return join(node.operator, *sides, node.matching, returns_bool=node.returns_bool)
            case nodes.Repeat(inner=inner, count=count):
                value = self.evaluate(inner)
                self._reserve_cells(cells_of(value) * count)
                return _repeated(value, count)
            case nodes.Call():
                value, found = CALLS[node.function](node, tuple(map(self.evaluate, node.arguments)))
                self.annotations |= found
                return value
            case _:
                raise TypeError(f"{type(node).__name__} is only valid as a complete query or in a fragment")

    def samples(self, node: nodes.Samples) -> Samples:
        """The samples of a query that is a range selector, without staleness markers."""
        return without_stale(self._samples(samples_fragment(node)))

    def _samples(self, fragment: AnyFragment) -> Samples:
        found = self._fetched[fragment]
        if not isinstance(found, Samples):
            raise TypeError(f"a {type(found).__name__} where a Samples was expected")
        return found

    def _fetched_rows(self, fragment: Fragment) -> Vector:
        found = self._fetched[fragment]
        if not isinstance(found, Vector):
            raise TypeError(f"a {type(found).__name__} where a Vector was expected")
        if fragment.grouping is not None or not fragment.drops_name:
            return found
        # After a range function, equal label sets are an error even if no step has a sample of both.
        return without_names(found, may_merge=bool(fragment.chain))

    def _vector(self, node: nodes.Node) -> Vector:
        return as_vector(self.evaluate(node))

    def _scalar(self, node: nodes.Node) -> F64s:
        return as_scalar(self.evaluate(node))

    def _window(self, node: nodes.Window | nodes.SubqueryWindow, samples: Samples) -> Vector:
        parameters = tuple(map(self._scalar, node.parameters))
        timestamps = node.times.timestamps()
        values = evaluate_window(node.function, samples, node.ends, node.range, parameters, timestamps=timestamps)
        collector = AnnotationCollector(node.function, parameters)
        collector.collect(values, samples.keys)
        self.annotations |= collector.annotations().at(node.span)
        rows = Vector(samples.keys, values)
        return rows if node.function in _KEEP_NAMES else without_names(rows, may_merge=False)

    def _negate(self, node: nodes.Negate) -> Value:
        value = self.evaluate(node.inner)
        if isinstance(value, Scalar):
            return Scalar(-value.values)
        vector = as_vector(value)
        return without_names(Vector(vector.keys, negated(vector.values)))

    def _map(self, node: nodes.Map) -> Vector:
        inner = self._vector(node.inner)
        parameters = tuple(map(self._scalar, node.parameters))
        return without_names(
            Vector(inner.keys, evaluate_elementwise(node.function, inner.values, parameters, node.grid))
        )

    def _vector_scalar(self, node: nodes.VectorScalarOperation) -> Vector:
        vector, scalar = self._vector(node.vector), self._scalar(node.scalar)
        if node.scalar_is_left:
            values = scalar_with_vector(node.operator, scalar, vector.values, returns_bool=node.returns_bool)
        else:
            values = vector_with_scalar(node.operator, vector.values, scalar, returns_bool=node.returns_bool)
        rows = Vector(vector.keys, values)
        drops = operator_drops_name(node.operator, returns_bool=node.returns_bool)
        return without_names(rows) if drops else rows

    def _aggregate(self, node: nodes.Aggregate) -> Vector:
        inner = self._vector(node.inner)
        parameter: F64s | str | None = None
        if node.parameter is not None:
            value = self.evaluate(node.parameter)
            parameter = value.value if isinstance(value, Text) else value.values if isinstance(value, Scalar) else None
        spec = AggregationSpec(node.aggregator, node.labels, node.is_without, parameter)
        spec.check()
        if node.aggregator is Aggregator.QUANTILE and len(inner.keys):
            invalid = spec.invalid_quantiles()
            self.annotations |= Annotations(annotations.invalid_quantile(one, node.span) for one in invalid)
        return aggregate(spec, inner)


def _repeated(value: Value, count: int) -> Value:
    match value:
        case Vector(keys=keys, values=values):
            return Vector(keys, np.repeat(values, count, axis=1))
        case Scalar(values=values):
            return Scalar(np.repeat(values, count))
        case _:
            return value
