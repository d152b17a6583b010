"""Values of literal tokens: numbers, durations and strings."""

from strandline.index.escapes import escape_at
from strandline.promql.durations import duration_seconds
from strandline.promql.errors import parse_error
from strandline.promql.go_text import quoted
from strandline.promql.number_syntax import number_value
from strandline.promql.tokens import Kind, Token

LITERALS = frozenset({Kind.NUMBER, Kind.DURATION})


def literal_number(query: str, token: Token) -> float:
    """The value of a number, or the seconds of a duration. Raises `ParseError`."""
    try:
        if token.kind is Kind.DURATION:
            return duration_seconds(token.text)
        return number_value(token.text)
    except ValueError as error:
        fault = str(error)
        if token.kind is Kind.NUMBER:
            fault = f"error parsing number: strconv.ParseFloat: parsing {quoted(token.text)}: {fault}"
        raise parse_error(query, token.span, fault) from None


def string_value(token: Token) -> str:
    """The value of a string. Bytes that are not valid UTF-8, which escapes can produce, become lone surrogates."""
    quote, content = token.text[0], token.text[1:-1]
    if quote == "`" or "\\" not in content:
        return content
    return _unescaped(content, quote).decode(errors="surrogateescape")


def _unescaped(content: str, quote: str) -> bytes:
    data = bytearray()
    position = 0
    while (backslash := content.find("\\", position)) >= 0:
        data += content[position:backslash].encode()
        escape = escape_at(content, backslash, quote)
        if escape is None:
            raise AssertionError(f"the lexer accepted an invalid escape at {backslash} of {content!r}")
        written, position = escape
        data += written
    return bytes(data + content[position:].encode())
