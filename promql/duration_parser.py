"""The parser for durations in brackets and after `offset`, with arithmetic."""

from strandline.promql.durations import is_out_of_range
from strandline.promql.expressions import (
    Duration,
    DurationArithmetic,
    DurationNegation,
    DurationNumber,
    DurationOperator,
    DurationParentheses,
    DurationRange,
    DurationStep,
    Span,
)
from strandline.promql.literals import LITERALS, literal_number
from strandline.promql.token_stream import TokenStream
from strandline.promql.tokens import CALLS_IN_DURATIONS, Kind, Token

_LOWEST = 1
_SIGN = 2
_POWER = 3
_PRECEDENCE = {
    Kind.ADD: _LOWEST,
    Kind.SUBTRACT: _LOWEST,
    Kind.MULTIPLY: _SIGN,
    Kind.DIVIDE: _SIGN,
    Kind.MODULO: _SIGN,
    Kind.POWER: _POWER,
}
_SIGNS = frozenset({Kind.ADD, Kind.SUBTRACT})


class DurationParser:
    """Parses durations from a stream. `context` and `expected` are parts of error messages."""

    def __init__(self, tokens: TokenStream, context: str, expected: str) -> None:
        self._tokens = tokens
        self._context = context
        self._expected = expected
        self._height = 0

    def positive(self) -> Duration:
        """A duration in brackets: any arithmetic. A literal has to be positive."""
        duration = self._sum(_LOWEST)
        if isinstance(duration, DurationNumber) and duration.seconds <= 0:
            raise self._tokens.error(duration.span, "duration must be greater than 0")
        return duration

    def offset(self) -> Duration:
        """A duration after `offset`. An operator that follows belongs to the expression: a offset 5m * 2 is
        (a offset 5m) * 2. As in Prometheus, only an offset that starts with parentheses or two signs may continue with
        operators.
        """
        if self._tokens.peek().kind in _SIGNS:
            sign = self._tokens.take()
            if self._tokens.peek().kind in _SIGNS:
                return self._continued(self._signed(sign, self._sum(_POWER)), _LOWEST)
            return self._signed(sign, self._single())
        if self._tokens.peek().kind is Kind.LEFT_PARENTHESIS:
            return self._sum(_LOWEST)
        return self._single()

    def _sum(self, min_precedence: int) -> Duration:
        """Operands, and operators with at least this precedence."""
        self._tokens.enter()
        if self._tokens.peek().kind in _SIGNS:
            sign = self._tokens.take()
            duration = self._signed(sign, self._sum(_POWER))
        else:
            duration = self._single()
        duration = self._continued(duration, min_precedence)
        self._tokens.leave()
        return duration

    def _continued(self, left: Duration, min_precedence: int) -> Duration:
        height = self._height
        while (precedence := _PRECEDENCE.get(self._tokens.peek().kind, 0)) >= min_precedence:
            operator = self._tokens.take()
            right = self._sum(precedence + (operator.kind is not Kind.POWER))
            if isinstance(right, DurationNumber) and right.seconds == 0:
                self._check_not_zero(operator)
            height = self._height_above(height)
            left = DurationArithmetic(
                DurationOperator(operator.text), left, right, Span(left.span.start, right.span.end)
            )
        self._height = height
        return left

    def _single(self) -> Duration:
        token = self._tokens.peek()
        if token.kind in LITERALS:
            return self._literal(self._tokens.take())
        if token.kind is Kind.LEFT_PARENTHESIS:
            return self._parenthesised()
        if token.kind in CALLS_IN_DURATIONS:
            return self._call()
        raise self._unexpected()

    def _literal(self, token: Token) -> Duration:
        seconds = literal_number(self._tokens.query, token)
        if is_out_of_range(seconds):
            raise self._tokens.error(token.span, "duration out of range")
        self._height = 1
        return DurationNumber(seconds, token.span, is_duration=token.kind is Kind.DURATION)

    def _parenthesised(self) -> Duration:
        opening = self._tokens.take()
        inner = self._sum(_LOWEST)
        closing = self._expect(Kind.RIGHT_PARENTHESIS)
        if isinstance(inner, DurationParentheses):
            inner = inner.inner
        else:
            self._height = self._height_above(0)
        return DurationParentheses(inner, Span(opening.start, closing.end))

    def _call(self) -> Duration:
        name = self._tokens.take()
        self._expect(Kind.LEFT_PARENTHESIS)
        if name.kind in (Kind.STEP, Kind.RANGE):
            closing = self._expect(Kind.RIGHT_PARENTHESIS)
            span = Span(name.start, closing.end)
            self._height = 1
            return DurationStep(span) if name.kind is Kind.STEP else DurationRange(span)
        left = self._sum(_LOWEST)
        height = self._height
        self._expect(Kind.COMMA)
        right = self._sum(_LOWEST)
        closing = self._expect(Kind.RIGHT_PARENTHESIS)
        self._height = self._height_above(height)
        return DurationArithmetic(DurationOperator(name.kind.value), left, right, Span(name.start, closing.end))

    def _signed(self, sign: Token, duration: Duration) -> Duration:
        """The sign of a literal becomes part of it. A plus before anything else is dropped."""
        if isinstance(duration, DurationNumber):
            seconds = -duration.seconds if sign.kind is Kind.SUBTRACT else duration.seconds
            return DurationNumber(seconds, Span(sign.start, duration.span.end), is_duration=duration.is_duration)
        if sign.kind is Kind.ADD:
            return duration
        self._height = self._height_above(0)
        return DurationNegation(duration, Span(sign.start, duration.span.end))

    def _check_not_zero(self, operator: Token) -> None:
        if operator.kind is Kind.DIVIDE:
            raise self._tokens.error(operator.span, "division by zero")
        if operator.kind is Kind.MODULO:
            raise self._tokens.error(operator.span, "modulo by zero")

    def _height_above(self, other: int) -> int:
        """The height of a node above the last tree and one of height `other`."""
        height = 1 + max(other, self._height)
        self._tokens.check_height(height)
        return height

    def _expect(self, kind: Kind) -> Token:
        return self._tokens.expect(kind, self._context, self._expected)

    def _unexpected(self) -> Exception:
        return self._tokens.unexpected(self._context, self._expected)
