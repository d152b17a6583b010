"""A stream of tokens with one token of lookahead, and the limits on nesting, shared by the parsers."""

from typing import Final

from strandline.promql.errors import ParseError, parse_error
from strandline.promql.expressions import Span
from strandline.promql.lexer import Lexer
from strandline.promql.tokens import Kind, Token

MAX_NESTING: Final = 100
"""The limit for nested parentheses, calls and signs. The parser uses five of Python's 1,000 stack frames per level."""
MAX_HEIGHT: Final = 200
"""The limit for the levels of a tree; each operator of a chain is a level. Functions over trees are recursive, too."""


class TokenStream:
    """The tokens of a query. A token is read only when it is needed, so that the first error is reported first."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.end = 0
        """The end of the last token that was taken."""
        self.aggregations = 0
        """The number of aggregations around the current position. Error messages mention the context."""
        self._lexer = Lexer(query)
        self._next: Token | None = None
        self._depth = 0

    def peek(self) -> Token:
        """The next token, without taking it."""
        if self._next is None:
            self._next = self._lexer.next()
        return self._next

    def take(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self._next = None
        self.end = token.end
        return token

    def take_if(self, kind: Kind) -> Token | None:
        """Take the next token if it is of this kind."""
        return self.take() if self.peek().kind is kind else None

    def expect(self, kind: Kind, context: str = "", expected: str = "") -> Token:
        """Take the next token, which has to be of this kind."""
        if self.peek().kind is not kind:
            raise self.unexpected(context, expected)
        return self.take()

    def unexpected(self, context: str = "", expected: str = "") -> ParseError:
        """The error for the next token."""
        token = self.peek()
        context = context or ("aggregation" if self.aggregations else "")
        fault = f"unexpected {token.described()}"
        fault += f" in {context}" if context else ""
        fault += f", expected {expected}" if expected else ""
        return parse_error(self.query, token.span, fault)

    def error(self, span: Span, fault: str) -> ParseError:
        """An error at another position."""
        return parse_error(self.query, span, fault)

    def enter(self) -> None:
        """Enter a level of nesting."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._too_deep(f"expression is nested more than {MAX_NESTING} levels deep")

    def leave(self) -> None:
        """Leave a level of nesting."""
        self._depth -= 1

    def check_height(self, height: int) -> None:
        """Raise `ParseError` for a tree with too many levels."""
        if height > MAX_HEIGHT:
            raise self._too_deep(
                f"expression has more than {MAX_HEIGHT} levels, of which each operator in a chain is one"
            )

    def _too_deep(self, fault: str) -> ParseError:
        return parse_error(self.query, Span(self.end, len(self.query)), fault)
