"""Parses PromQL selectors, such as `up{job=~"a|b", x!="y"}`, into matchers.

A selector is a metric name, matchers in braces, or both. Names with other characters are written in the braces, in
quotes: `{"metric.name", "a.b"="c"}`. Strings have three kinds of quotes, with the escapes of Go; white space and
comments are allowed between tokens. Regular expressions are not checked here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.errors import ExitCode, Fatal
from strandline.index.escapes import NUMBERED_ESCAPE, escape_at
from strandline.index.matchers import Matcher, MatchOp, matches_empty

METRIC_NAME = "__name__"

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_METRIC_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile("=~|=|!=|!~")
_OPERATORS = {op.value: op for op in MatchOp}
_SIMPLE_MATCHER = re.compile(r'([A-Za-z_][A-Za-z0-9_]*+)(=~|!=|!~|=)"([^"\\\n]*+)"')
_ONE_SIMPLE_MATCHER = r'[A-Za-z_][A-Za-z0-9_]*+(?:=~|!=|!~|=)"[^"\\\n]*+"'
_SIMPLE_SELECTOR = re.compile(
    rf"([A-Za-z_:][A-Za-z0-9_:]*+)?(?:\{{({_ONE_SIMPLE_MATCHER}(?:,{_ONE_SIMPLE_MATCHER})*+,?)\}})?"
)
_RAW_STRING = re.compile("`([^`]*)`")
_PLAIN_CHARACTERS = {'"': re.compile(r'[^"\\\n]+'), "'": re.compile(r"[^'\\\n]+")}
# PromQL reads these as operators or numbers, in any case, where a metric name could be.
_NO_METRIC_NAMES = frozenset({"atan2", "bool", "group_left", "group_right", "ignoring", "inf", "nan", "on"})


class InvalidSelector(Fatal):
    """Not a selector, or one that is rejected. `position` is an index into the text."""

    exit_code = ExitCode.USAGE

    def __init__(self, fault: str, position: int = 0, *, remedy: str = "") -> None:
        super().__init__(fault, remedy=remedy)
        self.position = position


def parse_selector(selector: str) -> tuple[Matcher, ...]:
    """Return the matchers of a selector, in their order; a metric name in front of the braces comes first.

    Raises `InvalidSelector` with the position, what was found and what was expected. `{}` is a valid selector here:
    `require_a_non_empty_matcher` rejects it.
    """
    if plain := simple_matchers(selector):
        return tuple([Matcher(label, _OPERATORS[op], value) for label, op, value in plain])
    return _Parser(selector).parse()


def require_a_non_empty_matcher(matchers: Sequence[Matcher]) -> None:
    """Reject matchers that all match the empty value, as PromQL does: `{}` or `{a=~".*"}` would select every series.

    Raises `InvalidSelector`, or `InvalidMatcher` for an invalid expression.
    """
    if any(matcher.value and matcher.op is MatchOp.EQUAL for matcher in matchers):
        return
    if all(map(matches_empty, matchers)):
        shown = ", ".join(map(str, matchers))
        raise InvalidSelector(
            f"{{{shown}}} matches series without any of its labels",
            remedy='Add a matcher that does not match the empty value, such as a metric\'s name or job=~".+"',
        )


def simple_matchers(selector: str) -> list[tuple[str, str, str]]:
    """Return the label, operator and value of each matcher of a selector without escapes or other special syntax, as
    most are. Empty if this is another selector, or one without matchers.
    """
    plain = _SIMPLE_SELECTOR.fullmatch(selector)
    if plain is None or not selector.isascii():
        return []
    name, braces = plain.groups("")
    matchers: list[tuple[str, str, str]] = _SIMPLE_MATCHER.findall(braces)
    if not name:
        return matchers
    if name.lower() in _NO_METRIC_NAMES or METRIC_NAME in braces:
        return []
    return [(METRIC_NAME, "=", name), *matchers]


@dataclass(slots=True)
class _Parser:
    text: str
    position: int = 0

    def parse(self) -> tuple[Matcher, ...]:
        self._skip_blank()
        matchers = self._take_metric_name()
        if self._at("{"):
            matchers += self._take_braces(named=bool(matchers))
        elif not matchers:
            raise self._unexpected('a metric name or "{"')
        if self.position < len(self.text):
            raise self._unexpected("the end of the selector")
        return tuple(matchers)

    def _take_metric_name(self) -> list[Matcher]:
        name = _METRIC_NAME.match(self.text, self.position)
        if name is None:
            return []
        if name.group().lower() in _NO_METRIC_NAMES:
            raise self._unexpected('a metric name or "{"', remedy=f'Write {{"{name.group()}"}} for the metric')
        self._go_to(name.end())
        return [Matcher(METRIC_NAME, MatchOp.EQUAL, name.group())]

    def _take_braces(self, *, named: bool) -> list[Matcher]:
        """Read the matchers in braces. A metric name may be in front of them or inside, not both."""
        matchers: list[Matcher] = []
        quoted_name = False
        self._go_to(self.position + 1)
        while not self._at("}"):
            start = self.position
            matcher, is_name = self._take_matcher()
            if (named and matcher.label == METRIC_NAME) or (quoted_name and is_name):
                raise self._fault(f"the metric name is given twice, the second time as {matcher}", start)
            quoted_name = quoted_name or is_name
            matchers.append(matcher)
            if self._at(","):
                self._go_to(self.position + 1)
            elif not self._at("}"):
                raise self._unexpected('"," or "}"')
        self._go_to(self.position + 1)
        return matchers

    def _take_matcher(self) -> tuple[Matcher, bool]:
        """Read a matcher. Also return whether it is only a metric name, in quotes."""
        plain = _LABEL_NAME.match(self.text, self.position)
        quoted = plain is None and self._at_string()
        if plain is not None:
            label = plain.group()
            self._go_to(plain.end())
        elif quoted:
            label = self._take_string()
        else:
            raise self._unexpected('a label name or "}"')
        operator = _OPERATOR.match(self.text, self.position)
        if operator is None:
            if quoted and (self._at(",") or self._at("}")):
                return Matcher(METRIC_NAME, MatchOp.EQUAL, label), True
            raise self._unexpected("one of = != =~ !~")
        self._go_to(operator.end())
        if not self._at_string():
            raise self._unexpected("a string in quotes")
        return Matcher(label, MatchOp(operator.group()), self._take_string()), False

    def _at_string(self) -> bool:
        return any(map(self._at, "\"'`"))

    def _take_string(self) -> str:
        start = self.position
        if self._at("`"):
            raw = _RAW_STRING.match(self.text, start)
            if raw is None:
                raise self._fault("a string without its closing `", start)
            self._go_to(raw.end())
            return raw[1]
        quote = self.text[start]
        # Escapes may be single bytes of a character, so collect bytes until the end.
        data = bytearray()
        self.position += 1
        while not self._at(quote):
            plain = _PLAIN_CHARACTERS[quote].match(self.text, self.position)
            if plain is not None:
                data += _encoded(plain.group())
                self.position = plain.end()
            elif self._at("\\"):
                data += self._take_escape(quote)
            else:
                raise self._fault(f"a string without its closing {quote}", start)
        self._go_to(self.position + 1)
        try:
            return data.decode(errors="strict")
        except UnicodeDecodeError as error:
            raise self._fault("a string that is not valid UTF-8", start) from error

    def _take_escape(self, quote: str) -> bytes:
        start = self.position
        escape = escape_at(self.text, start, quote)
        if escape is None:
            if number := NUMBERED_ESCAPE.match(self.text, start):
                raise self._fault(f"an escape {number.group()} for a character that does not exist", start)
            raise self._fault(f"an unknown escape {self.text[start : start + 2]}", start)
        data, self.position = escape
        return data

    def _at(self, expected: str) -> bool:
        return self.text.startswith(expected, self.position)

    def _go_to(self, position: int) -> None:
        """Advance to a position, and skip white space and comments."""
        self.position = position
        self._skip_blank()

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self.text, self.position)
        self.position = blank.end() if blank else self.position

    def _unexpected(self, expected: str, *, remedy: str = "") -> InvalidSelector:
        rest = self.text[self.position : self.position + 20]
        found = f"{rest!r}" if rest else "the end"
        return self._fault(f"expected {expected}, found {found}", self.position, remedy)

    def _fault(self, fault: str, position: int, remedy: str = "") -> InvalidSelector:
        return InvalidSelector(
            f"{self.text[:200]!r} is not a selector: {fault} at character {position + 1}", position, remedy=remedy
        )


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
