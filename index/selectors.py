"""PromQL's selectors as text: `up{job=~"a|b", x!="y"}`, and the matchers that one stands for.

A selector is a metric's name, matchers in braces, or both. Names that are not plain go into the braces in quotes:
`{"metric.name", "a.b"="c"}`. Strings are quoted in three ways, with the escapes of Go; white space and comments may
stand between any two tokens. Whether an expression is one is not looked at here.
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
# PromQL reads these as operators or numbers wherever a metric's name could stand, in any case of their letters.
_NO_METRIC_NAMES = frozenset({"atan2", "bool", "group_left", "group_right", "ignoring", "inf", "nan", "on"})


class InvalidSelector(Fatal):
    """Text that is not a selector, or a selector that is refused. `position` is a place in the text, from 0."""

    exit_code = ExitCode.USAGE

    def __init__(self, fault: str, position: int = 0, *, remedy: str = "") -> None:
        super().__init__(fault, remedy=remedy)
        self.position = position


def parse_selector(selector: str) -> tuple[Matcher, ...]:
    """The matchers of a selector, in their order; a metric's name in front of the braces comes first.

    Raises `InvalidSelector`, which says where, what was found and what was expected. `{}` is a selector: whether one
    may match everything is `require_a_non_empty_matcher`'s to say.
    """
    if plain := simple_matchers(selector):
        return tuple([Matcher(label, _OPERATORS[op], value) for label, op, value in plain])
    return _Parser(selector).parse()


def require_a_non_empty_matcher(matchers: Sequence[Matcher]) -> None:
    """Refuse matchers that all let the empty value pass, as PromQL does: `{}` or `{a=~".*"}` would mean every series.

    Raises `InvalidSelector`, or `InvalidMatcher` for an expression that can't be read.
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
    """The matchers of a selector without anything that has to be looked at twice, as most are: a label, an operator and
    a value of each. None if this is another one, or none at all.
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
        """What stands in braces. A name in front of them and one inside are one too many."""
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
        """A matcher, and whether it is a metric's name alone, in quotes."""
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
        # Escapes may give single bytes of a character, so that bytes it is until the end.
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
            raise self._fault("a string that is not UTF-8, which no label can be,", start) from error

    def _take_escape(self, quote: str) -> bytes:
        start = self.position
        escape = escape_at(self.text, start, quote)
        if escape is None:
            if number := NUMBERED_ESCAPE.match(self.text, start):
                raise self._fault(f"an escape {number.group()} for a character that is none", start)
            raise self._fault(f"an unknown escape {self.text[start : start + 2]}", start)
        data, self.position = escape
        return data

    def _at(self, expected: str) -> bool:
        return self.text.startswith(expected, self.position)

    def _go_to(self, position: int) -> None:
        """Move behind a token, and behind what is blank after it."""
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
