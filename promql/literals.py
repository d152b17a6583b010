"""What the tokens of literals are worth."""

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
    """What a string stands for. Escapes can give bytes that are not UTF-8, which are lone surrogates here."""
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
            raise AssertionError(f"the lexer let the escape at {backslash} of {content!r} pass")
        written, position = escape
        data += written
    return bytes(data + content[position:].encode())
