"""The parser for matchers in braces and lists of labels in parentheses."""

from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp, matches_empty
from strandline.index.selectors import METRIC_NAME
from strandline.promql.expressions import Span
from strandline.promql.go_text import as_utf8, is_utf8, quoted
from strandline.promql.literals import string_value
from strandline.promql.token_stream import TokenStream
from strandline.promql.tokens import LABEL_NAMES, Kind, Token

_OPERATORS = {
    Kind.ASSIGN: MatchOp.EQUAL,
    Kind.NOT_EQUAL: MatchOp.NOT_EQUAL,
    Kind.MATCH: MatchOp.MATCH,
    Kind.NOT_MATCH: MatchOp.NOT_MATCH,
}
_MATCHING = "label matching"
_GROUPING = "grouping opts"


def take_matchers(tokens: TokenStream) -> list[Matcher]:
    """Take matchers, including both braces. A string alone is a metric name."""
    tokens.expect(Kind.LEFT_BRACE)
    matchers: list[Matcher] = []
    while tokens.take_if(Kind.RIGHT_BRACE) is None:
        matchers.append(_take_matcher(tokens))
        if tokens.take_if(Kind.COMMA) is None and tokens.peek().kind is not Kind.RIGHT_BRACE:
            raise tokens.unexpected(_MATCHING, '"," or "}"')
    return matchers


def _take_matcher(tokens: TokenStream) -> Matcher:
    token = tokens.peek()
    if token.kind not in (Kind.IDENTIFIER, Kind.STRING):
        raise tokens.unexpected(_MATCHING, 'identifier or "}"')
    tokens.take()
    is_string = token.kind is Kind.STRING
    label = as_utf8(string_value(token)) if is_string else token.text
    op = _OPERATORS.get(tokens.peek().kind)
    if op is None:
        if is_string:
            return Matcher(METRIC_NAME, MatchOp.EQUAL, label)
        raise tokens.unexpected(_MATCHING, "label matching operator")
    tokens.take()
    value = tokens.expect(Kind.STRING, _MATCHING, "string")
    # No label contains bytes that are not UTF-8, so replacing them does not change what matches.
    matcher = Matcher(label, op, as_utf8(string_value(value)))
    if op in (MatchOp.MATCH, MatchOp.NOT_MATCH):
        _check_expression(tokens, matcher, token, value)
    return matcher


def _check_expression(tokens: TokenStream, matcher: Matcher, label: Token, value: Token) -> None:
    try:
        matches_empty(matcher)
    except InvalidMatcher as error:
        raise tokens.error(Span(label.start, value.end), f"error parsing regexp: {error.message}") from error


def take_labels(tokens: TokenStream) -> tuple[str, ...]:
    """Take a list of labels, including both parentheses."""
    tokens.expect(Kind.LEFT_PARENTHESIS, _GROUPING, '"("')
    labels: list[str] = []
    while tokens.take_if(Kind.RIGHT_PARENTHESIS) is None:
        labels.append(_take_label(tokens))
        if tokens.take_if(Kind.COMMA) is None and tokens.peek().kind is not Kind.RIGHT_PARENTHESIS:
            raise tokens.unexpected(_GROUPING, '"," or ")"')
    return tuple(labels)


def _take_label(tokens: TokenStream) -> str:
    token = tokens.peek()
    if token.kind in LABEL_NAMES:
        return tokens.take().text
    if token.kind is not Kind.STRING:
        raise tokens.unexpected(_GROUPING, "label")
    label = string_value(tokens.take())
    if not label or not is_utf8(label):
        raise tokens.error(token.span, f"invalid label name for grouping: {quoted(label)}")
    return label
