"""The parser for modifiers that follow an expression: ranges, subqueries, `offset` and `@`."""

import math

from strandline.promql.duration_parser import DurationParser
from strandline.promql.durations import literal_nanoseconds, round_half_away
from strandline.promql.errors import ParseError
from strandline.promql.expressions import (
    At,
    AtBound,
    Duration,
    DurationNumber,
    Expression,
    MatrixSelector,
    Span,
    Subquery,
    VectorSelector,
)
from strandline.promql.literals import LITERALS, literal_number
from strandline.promql.token_stream import TokenStream
from strandline.promql.tokens import Kind

_SIGNS = frozenset({Kind.ADD, Kind.SUBTRACT})
_DURATIONS = "number, duration, step(), or range()"
_MAX_MILLISECONDS = (1 << 63) - 1


def take_modifiers(tokens: TokenStream, expression: Expression, height: int) -> tuple[Expression, int]:
    """The expression with its modifiers, and the number of levels of the new tree. `height` is that of the old one."""
    while True:
        match tokens.peek().kind:
            case Kind.LEFT_BRACKET:
                expression, height = _range(tokens, expression, height)
            case Kind.OFFSET:
                tokens.take()
                offset = DurationParser(tokens, "offset", _DURATIONS).offset()
                expression = _with_offset(tokens, expression, offset)
            case Kind.AT:
                tokens.take()
                expression = _with_at(tokens, expression, _at(tokens, expression.span))
            case Kind.ANCHORED | Kind.SMOOTHED as modifier:
                raise tokens.error(expression.span, f"{modifier} modifier is experimental and not enabled")
            case _:
                return expression, height


def _range(tokens: TokenStream, inner: Expression, height: int) -> tuple[MatrixSelector | Subquery, int]:
    opening = tokens.take()
    length = DurationParser(tokens, "subquery or range selector", _DURATIONS).positive()
    if tokens.take_if(Kind.COLON):
        subquery = _subquery(tokens, inner, length)
        tokens.check_height(height + 1)
        return subquery, height + 1
    closing = tokens.expect(Kind.RIGHT_BRACKET, "subquery or range", '":" or "]"')
    brackets = Span(opening.start, closing.end)
    if not isinstance(inner, VectorSelector):
        raise tokens.error(brackets, "ranges only allowed for vector selectors")
    if _has_offset(inner.offset):
        raise tokens.error(brackets, "no offset modifiers allowed before range")
    if inner.at is not None:
        raise tokens.error(brackets, "no @ modifiers allowed before range")
    return MatrixSelector(inner, length, Span(inner.span.start, closing.end)), 2


def _subquery(tokens: TokenStream, inner: Expression, length: Duration) -> Subquery:
    step = None
    context = "subquery selector"
    if tokens.peek().kind is not Kind.RIGHT_BRACKET:
        step = DurationParser(tokens, context, 'number, duration, step(), range(), or "]"').positive()
    closing = tokens.expect(Kind.RIGHT_BRACKET, context, '"]"')
    return Subquery(inner, length, step, Span(inner.span.start, closing.end))


def _with_offset(tokens: TokenStream, expression: Expression, offset: Duration) -> Expression:
    span = Span(expression.span.start, tokens.end)
    match expression:
        case VectorSelector() if not _has_offset(expression.offset):
            return _selector(expression, span, offset, expression.at)
        case MatrixSelector(selector=selector) if not _has_offset(selector.offset):
            inner = _selector(selector, selector.span, offset, selector.at)
            return MatrixSelector(inner, expression.range, span)
        case Subquery(inner=inner) if not _has_offset(expression.offset):
            return Subquery(inner, expression.range, expression.step, span, offset, expression.at)
        case VectorSelector() | MatrixSelector() | Subquery():
            raise tokens.error(expression.span, "offset may not be set multiple times")
    raise _misplaced(tokens, "offset", expression)


def _with_at(tokens: TokenStream, expression: Expression, at: At) -> Expression:
    span = Span(expression.span.start, tokens.end)
    match expression:
        case VectorSelector(at=None):
            return _selector(expression, span, expression.offset, at)
        case MatrixSelector(selector=VectorSelector(at=None) as selector):
            inner = _selector(selector, selector.span, selector.offset, at)
            return MatrixSelector(inner, expression.range, span)
        case Subquery(inner=inner, at=None):
            return Subquery(inner, expression.range, expression.step, span, expression.offset, at)
        case VectorSelector() | MatrixSelector() | Subquery():
            raise tokens.error(expression.span, "@ <timestamp> may not be set multiple times")
    raise _misplaced(tokens, "@", expression)


def _at(tokens: TokenStream, before: Span) -> At:
    kind = tokens.peek().kind
    if kind in (Kind.START, Kind.FINISH):
        tokens.take()
        tokens.expect(Kind.LEFT_PARENTHESIS, "@", "timestamp")
        tokens.expect(Kind.RIGHT_PARENTHESIS, "@", "timestamp")
        return AtBound.START if kind is Kind.START else AtBound.END
    is_negative = kind is Kind.SUBTRACT
    if kind in _SIGNS:
        tokens.take()
    if tokens.peek().kind not in LITERALS:
        raise tokens.unexpected("@", "timestamp")
    seconds = literal_number(tokens.query, tokens.take())
    seconds = -seconds if is_negative else seconds
    if not -(2.0**63) < seconds < 2.0**63:
        shown = f"{seconds:+f}".title() if math.isinf(seconds) else f"{seconds:f}".replace("nan", "NaN")
        raise tokens.error(before, f"timestamp out of bounds for @ modifier: {shown}")
    return max(-_MAX_MILLISECONDS, min(_MAX_MILLISECONDS, round_half_away(seconds * 1000)))


def _misplaced(tokens: TokenStream, modifier: str, expression: Expression) -> ParseError:
    return tokens.error(
        expression.span,
        f"{modifier} modifier must be preceded by an instant vector selector or range vector selector or a subquery",
    )


def _selector(selector: VectorSelector, span: Span, offset: Duration | None, at: At | None) -> VectorSelector:
    return VectorSelector(selector.name, selector.matchers, span, offset, at)


def _has_offset(offset: Duration | None) -> bool:
    """Whether an offset is set. A literal 0 does not count, as in Prometheus."""
    return not (offset is None or (isinstance(offset, DurationNumber) and literal_nanoseconds(offset) == 0))
