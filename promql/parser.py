"""The parser: from the text of a query to its tree, by precedence climbing.

Error messages and their positions are those of Prometheus. The first error is reported. Types are checked after the
complete text has been parsed.
"""

from typing import Final

from strandline.index.matchers import Matcher, MatchOp
from strandline.index.selectors import METRIC_NAME
from strandline.promql.errors import parse_error
from strandline.promql.expressions import (
    Aggregation,
    Aggregator,
    Binary,
    Call,
    Cardinality,
    Expression,
    Matching,
    Negation,
    NumberLiteral,
    Operator,
    Parentheses,
    Span,
    StringLiteral,
    VectorSelector,
    type_of,
)
from strandline.promql.functions import FUNCTIONS
from strandline.promql.go_text import quoted
from strandline.promql.literals import LITERALS, literal_number, string_value
from strandline.promql.modifier_parser import take_modifiers
from strandline.promql.selector_parser import take_labels, take_matchers
from strandline.promql.token_stream import TokenStream
from strandline.promql.tokens import AGGREGATORS, CALLABLE_KEYWORDS, FILLS, METRIC_NAMES, Kind, Token
from strandline.promql.type_checking import check_types
from strandline.promql.value_types import ValueType

MAX_LENGTH: Final = 64 * 1024
"""The limit for the characters of a query."""

_LOWEST = 1
_POWER = 6
_PRECEDENCE: Final = {
    Kind.OR: _LOWEST,
    Kind.AND: 2,
    Kind.UNLESS: 2,
    Kind.EQUAL: 3,
    Kind.NOT_EQUAL: 3,
    Kind.GREATER: 3,
    Kind.GREATER_EQUAL: 3,
    Kind.LESS: 3,
    Kind.LESS_EQUAL: 3,
    Kind.TRIM_UPPER: 3,
    Kind.TRIM_LOWER: 3,
    Kind.ADD: 4,
    Kind.SUBTRACT: 4,
    Kind.MULTIPLY: 5,
    Kind.DIVIDE: 5,
    Kind.MODULO: 5,
    Kind.ATAN2: 5,
    Kind.POWER: _POWER,
}
_SIGNS = frozenset({Kind.ADD, Kind.SUBTRACT})
_CALLABLE = CALLABLE_KEYWORDS | {Kind.IDENTIFIER}
_GROUPINGS = frozenset({Kind.BY, Kind.WITHOUT})
_STARTS = METRIC_NAMES | LITERALS | _SIGNS | {Kind.STRING, Kind.LEFT_BRACE, Kind.LEFT_PARENTHESIS}
_TWO_ARGUMENTS = frozenset(
    {
        Aggregator.TOPK,
        Aggregator.BOTTOMK,
        Aggregator.LIMITK,
        Aggregator.LIMIT_RATIO,
        Aggregator.QUANTILE,
        Aggregator.COUNT_VALUES,
    }
)
EXPERIMENTAL_AGGREGATORS: Final = frozenset({Aggregator.LIMITK, Aggregator.LIMIT_RATIO})
"""Rejected by name, as in a Prometheus without the feature flag."""
_CARDINALITIES = {Kind.GROUP_LEFT: Cardinality.MANY_TO_ONE, Kind.GROUP_RIGHT: Cardinality.ONE_TO_MANY}


def parse(text: str) -> Expression:
    """The type-checked tree of a query. Raises `ParseError`."""
    if len(text) > MAX_LENGTH:
        raise parse_error(
            text, Span(MAX_LENGTH, len(text)), f"query has {len(text)} characters, and at most {MAX_LENGTH} are allowed"
        )
    expression = _Parser(text).parse()
    check_types(expression, text)
    return expression


class _Parser:
    def __init__(self, query: str) -> None:
        self._query = query
        self._tokens = TokenStream(query)
        self._height = 0
        """The number of levels of the last tree that was returned."""

    def parse(self) -> Expression:
        if self._tokens.peek().kind is Kind.END:
            raise self._tokens.error(Span(0, 0), "no expression found in input")
        expression = self._expression(_LOWEST)
        self._tokens.expect(Kind.END)
        return expression

    def _expression(self, min_precedence: int) -> Expression:
        """Operands, and operators with at least this precedence."""
        tokens = self._tokens
        tokens.enter()
        left = self._operand()
        height = self._height
        while (precedence := _PRECEDENCE.get(tokens.peek().kind, 0)) >= min_precedence:
            operator = tokens.take()
            returns_bool = tokens.take_if(Kind.BOOL) is not None
            matching = self._matching()
            is_filled = self._skip_fill()
            right = self._expression(precedence + (operator.kind is not Kind.POWER))
            height = 1 + max(height, self._height)
            tokens.check_height(height)
            span = Span(left.span.start, right.span.end)
            if is_filled:
                raise tokens.error(span, "binop fill modifiers are experimental and not enabled")
            sides = (Operator(operator.kind.value), left, right)
            left = Binary(*sides, span, returns_bool, _kept_matching(*sides, matching))
        tokens.check_height(height)
        tokens.leave()
        self._height = height
        return left

    def _operand(self) -> Expression:
        """A single expression and the modifiers that follow it."""
        tokens = self._tokens
        token = tokens.peek()
        kind = token.kind
        self._height = 1
        expression: Expression
        if kind in METRIC_NAMES or kind is Kind.LEFT_BRACE:
            expression = self._named(token)
        elif kind in LITERALS:
            tokens.take()
            expression = NumberLiteral(literal_number(self._query, token), token.span, kind is Kind.DURATION)
        elif kind is Kind.LEFT_PARENTHESIS:
            tokens.take()
            inner = self._expression(_LOWEST)
            closing = tokens.expect(Kind.RIGHT_PARENTHESIS)
            self._height += 1
            expression = Parentheses(inner, Span(token.start, closing.end))
        elif kind in _SIGNS:
            tokens.take()
            return self._signed(token, self._expression(_POWER))
        elif kind is Kind.STRING:
            tokens.take()
            expression = StringLiteral(string_value(token), token.span)
        else:
            raise tokens.unexpected()
        expression, self._height = take_modifiers(tokens, expression, self._height)
        return expression

    def _signed(self, sign: Token, inner: Expression) -> Expression:
        """A sign has a lower precedence than a power: -2^2 is -(2^2). The sign of a number becomes part of it."""
        span = Span(sign.start, inner.span.end)
        if isinstance(inner, NumberLiteral):
            value = -inner.value if sign.kind is Kind.SUBTRACT else inner.value
            return NumberLiteral(value, span, inner.is_duration)
        self._height += 1
        return Negation(inner, span, is_plus=sign.kind is Kind.ADD)

    def _named(self, token: Token) -> Expression:
        """An expression that starts with a name or a brace: aggregation, call or selector. Keywords may be names."""
        tokens = self._tokens
        if token.kind is Kind.LEFT_BRACE:
            matchers = take_matchers(tokens)
            return VectorSelector("", tuple(matchers), Span(token.start, tokens.end))
        tokens.take()
        follows = tokens.peek().kind
        if token.kind in AGGREGATORS and (follows is Kind.LEFT_PARENTHESIS or follows in _GROUPINGS):
            return self._aggregation(token)
        if token.kind in _CALLABLE and follows is Kind.LEFT_PARENTHESIS:
            return self._call(token)
        matchers = take_matchers(tokens) if follows is Kind.LEFT_BRACE else []
        matchers.append(Matcher(METRIC_NAME, MatchOp.EQUAL, token.text))
        return VectorSelector(token.text, tuple(matchers), Span(token.start, tokens.end))

    def _call(self, name: Token) -> Call:
        arguments: list[Expression] = []
        height = self._take_arguments(arguments)
        function = FUNCTIONS.get(name.text)
        if function is None:
            raise self._tokens.error(name.span, f"unknown function with name {quoted(name.text)}")
        if function.is_experimental:
            raise self._tokens.error(name.span, f"function {quoted(name.text)} is not enabled")
        self._height = 1 + height
        return Call(function, tuple(arguments), Span(name.start, self._tokens.end))

    def _take_arguments(self, arguments: list[Expression]) -> int:
        """Take arguments in parentheses. Returns the number of levels of the highest one."""
        tokens = self._tokens
        tokens.expect(Kind.LEFT_PARENTHESIS)
        height = 0
        if tokens.take_if(Kind.RIGHT_PARENTHESIS):
            return height
        while True:
            arguments.append(self._expression(_LOWEST))
            height = max(height, self._height)
            comma = tokens.take_if(Kind.COMMA)
            if comma is None:
                tokens.expect(Kind.RIGHT_PARENTHESIS)
                return height
            if tokens.peek().kind not in _STARTS:
                raise tokens.error(comma.span, "trailing commas not allowed in function call args")

    def _aggregation(self, name: Token) -> Aggregation:
        tokens = self._tokens
        tokens.aggregations += 1
        aggregator = Aggregator(name.kind.value)
        grouping = self._grouping()
        arguments: list[Expression] = []
        height = self._take_arguments(arguments)
        if grouping is None:
            grouping = self._grouping()
        tokens.aggregations -= 1
        span = Span(name.start, tokens.end)
        if not arguments:
            raise tokens.error(span, "no arguments for aggregate expression provided")
        if aggregator in EXPERIMENTAL_AGGREGATORS:
            flag = "--enable-feature=promql-experimental-functions"
            raise tokens.error(span, f"{aggregator}() is experimental and must be enabled with {flag}")
        expected = 2 if aggregator in _TWO_ARGUMENTS else 1
        if len(arguments) != expected:
            raise tokens.error(
                span,
                "wrong number of arguments for aggregate expression provided,"
                f" expected {expected}, got {len(arguments)}",
            )
        self._height = 1 + height
        labels, is_without = grouping or ((), False)
        parameter = arguments[0] if expected > 1 else None
        return Aggregation(aggregator, arguments[-1], parameter, labels, is_without, span)

    def _grouping(self) -> tuple[tuple[str, ...], bool] | None:
        if self._tokens.peek().kind not in _GROUPINGS:
            return None
        is_without = self._tokens.take().kind is Kind.WITHOUT
        return take_labels(self._tokens), is_without

    def _matching(self) -> Matching:
        """`on`, `ignoring`, `group_left` and `group_right`."""
        tokens = self._tokens
        if tokens.peek().kind not in (Kind.ON, Kind.IGNORING):
            return Matching()
        is_on = tokens.take().kind is Kind.ON
        labels = take_labels(tokens)
        cardinality = _CARDINALITIES.get(tokens.peek().kind)
        if cardinality is None:
            return Matching(labels=labels, is_on=is_on)
        tokens.take()
        follows = tokens.peek().kind
        # A token that can't start the right operand is reported as an invalid list of labels.
        is_list = follows is Kind.LEFT_PARENTHESIS or follows not in _STARTS
        include = take_labels(tokens) if is_list else ()
        return Matching(cardinality, labels, is_on, include)

    def _skip_fill(self) -> bool:
        """Skip `fill`, `fill_left` and `fill_right`, which need a feature flag. Returns whether there was one."""
        tokens = self._tokens
        taken = set[Kind]()
        while (kind := tokens.peek().kind) in FILLS and kind not in taken and Kind.FILL not in taken:
            if kind is Kind.FILL and taken:
                break
            taken.add(tokens.take().kind)
            tokens.expect(Kind.LEFT_PARENTHESIS)
            if tokens.peek().kind in _SIGNS:
                tokens.take()
            if tokens.peek().kind not in LITERALS:
                raise tokens.unexpected()
            literal_number(self._query, tokens.take())
            tokens.expect(Kind.RIGHT_PARENTHESIS)
        return bool(taken)


def _kept_matching(operator: Operator, left: Expression, right: Expression, matching: Matching) -> Matching | None:
    """The matching if both sides are vectors, or if it has labels, so that the type check can reject them."""
    if operator.is_set and matching.cardinality is Cardinality.ONE_TO_ONE:
        matching = Matching(Cardinality.MANY_TO_MANY, matching.labels, matching.is_on)
    between_vectors = type_of(left) is ValueType.VECTOR and type_of(right) is ValueType.VECTOR
    return matching if between_vectors or matching.labels else None
