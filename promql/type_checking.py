"""The type check of an expression. Error messages are those of Prometheus."""

from strandline.index.matchers import matches_empty
from strandline.index.selectors import METRIC_NAME
from strandline.promql.errors import ParseError, parse_error
from strandline.promql.expressions import (
    Aggregation,
    Aggregator,
    Binary,
    Call,
    Cardinality,
    Expression,
    Matching,
    MatrixSelector,
    Negation,
    NumberLiteral,
    Parentheses,
    Span,
    StringLiteral,
    Subquery,
    VectorSelector,
    type_of,
)
from strandline.promql.go_text import quoted
from strandline.promql.value_types import ValueType

_SPACES = " \t\r\n"
_OPERANDS = frozenset({ValueType.SCALAR, ValueType.VECTOR})


def check_types(expression: Expression, query: str) -> None:
    """Check a tree. `query` is the text that it was parsed from. Raises `ParseError`."""
    _Check(query).check(expression)


class _Check:
    def __init__(self, query: str) -> None:
        self._query = query

    def check(self, expression: Expression) -> None:
        match expression:
            case NumberLiteral() | StringLiteral():
                pass
            case VectorSelector():
                self._selector(expression)
            case MatrixSelector(selector=selector):
                self._selector(selector)
            case Parentheses(inner=inner):
                self.check(inner)
            case Negation(inner=inner):
                self.check(inner)
                self._negation(expression)
            case Subquery(inner=inner):
                self.check(inner)
                self._subquery(expression)
            case Call():
                self._count_arguments(expression)
                for index, argument in enumerate(expression.arguments):
                    self.check(argument)
                    self._argument(expression, index)
            case Aggregation(inner=inner, parameter=parameter):
                self.check(inner)
                self._expect(inner, ValueType.VECTOR, "aggregation expression")
                if parameter is not None:
                    self.check(parameter)
                    self._parameter(expression.aggregator, parameter)
            case Binary(left=left, right=right):
                self.check(left)
                self.check(right)
                self._binary(expression)

    def _negation(self, negation: Negation) -> None:
        given = type_of(negation.inner)
        if given not in _OPERANDS:
            raise self._error(
                negation.span,
                "unary expression only allowed on expressions of type scalar or instant vector,"
                f" got {quoted(given.display_name)}",
            )

    def _subquery(self, subquery: Subquery) -> None:
        given = type_of(subquery.inner)
        if given is not ValueType.VECTOR:
            raise self._error(subquery.span, f"subquery is only allowed on instant vector, got {given.value} instead")

    def _count_arguments(self, call: Call) -> None:
        function, given = call.function, len(call.arguments)
        parameters = len(function.parameters)
        minimum = parameters - (1 if function.is_variadic else function.optional)
        called = f"argument(s) in call to {quoted(function.name)}, got {given}"
        if not function.is_variadic and not function.optional:
            if given != parameters:
                raise self._error(call.span, f"expected {parameters} {called}")
        elif given < minimum:
            raise self._error(call.span, f"expected at least {minimum} {called}")
        elif given > parameters and not function.is_variadic:
            raise self._error(call.span, f"expected at most {parameters} {called}")

    def _argument(self, call: Call, index: int) -> None:
        function = call.function
        wanted = function.parameters[min(index, len(function.parameters) - 1)]
        self._expect(call.arguments[index], wanted, f"call to function {quoted(function.name)}")

    def _parameter(self, aggregator: Aggregator, parameter: Expression) -> None:
        wanted = ValueType.STRING if aggregator is Aggregator.COUNT_VALUES else ValueType.SCALAR
        self._expect(parameter, wanted, "aggregation parameter")

    def _expect(self, expression: Expression, wanted: ValueType, context: str) -> None:
        given = type_of(expression)
        if given is not wanted:
            raise self._error(
                expression.span, f"expected type {wanted.display_name} in {context}, got {given.display_name}"
            )

    def _binary(self, binary: Binary) -> None:
        left, right = type_of(binary.left), type_of(binary.right)
        operator, matching = binary.operator, binary.matching or Matching()
        if binary.returns_bool and not operator.is_comparison:
            raise self._at_operator(binary, "bool modifier can only be used on comparison operators")
        scalars = left is ValueType.SCALAR and right is ValueType.SCALAR
        if operator.is_comparison and not binary.returns_bool and scalars:
            raise self._at_operator(binary, "comparisons between scalars must use BOOL modifier")
        if matching.is_on:
            for label in matching.labels:
                if label in matching.include:
                    fault = f"label {quoted(label)} must not occur in ON and GROUP clause at once"
                    raise self._at_operator(binary, fault)
        for side, given in ((binary.left, left), (binary.right, right)):
            if given not in _OPERANDS:
                raise self._error(side.span, "binary expression must contain only scalar and instant vector types")
        if ValueType.SCALAR in (left, right):
            if matching.labels:
                raise self._error(binary.span, "vector matching only allowed between instant vectors")
            if operator.is_set:
                fault = f"set operator {quoted(operator.value)} not allowed in binary scalar expression"
                raise self._error(binary.span, fault)
        elif operator.is_set and matching.cardinality is not Cardinality.MANY_TO_MANY:
            raise self._error(binary.span, f"no grouping allowed for {quoted(operator.value)} operation")

    def _selector(self, selector: VectorSelector) -> None:
        if selector.name:
            for matcher in selector.matchers[:-1]:
                if matcher.label == METRIC_NAME:
                    twice = f"{quoted(selector.name)} or {quoted(matcher.value)}"
                    raise self._error(selector.span, f"metric name must not be set twice: {twice}")
            return
        if all(map(matches_empty, selector.matchers)):
            raise self._error(selector.span, "vector selector must contain at least one non-empty matcher")

    def _at_operator(self, binary: Binary, fault: str) -> ParseError:
        """An error at the position of the operator and its modifiers."""
        start, end = binary.left.span.end, binary.right.span.start
        between = self._query[start:end]
        start += len(between) - len(between.lstrip(_SPACES))
        return self._error(Span(start, start + len(between.strip(_SPACES))), fault)

    def _error(self, span: Span, fault: str) -> ParseError:
        return parse_error(self._query, span, fault)
