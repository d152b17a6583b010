"""The kinds of tokens in PromQL, and how error messages show a token."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from strandline.promql.expressions import Span
from strandline.promql.go_text import quoted, shortened


class Kind(StrEnum):
    """Kinds of tokens. The value is the text of the token, or its name in messages."""

    END = "end of input"
    IDENTIFIER = "identifier"
    METRIC_IDENTIFIER = "metric identifier"
    STRING = "string"
    NUMBER = "number"
    DURATION = "duration"

    LEFT_PARENTHESIS = "("
    RIGHT_PARENTHESIS = ")"
    LEFT_BRACE = "{"
    RIGHT_BRACE = "}"
    LEFT_BRACKET = "["
    RIGHT_BRACKET = "]"
    COMMA = ","
    COLON = ":"
    ASSIGN = "="

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"
    POWER = "^"
    ATAN2 = "atan2"
    EQUAL = "=="
    NOT_EQUAL = "!="
    GREATER = ">"
    LESS = "<"
    GREATER_EQUAL = ">="
    LESS_EQUAL = "<="
    TRIM_UPPER = "</"
    TRIM_LOWER = ">/"
    MATCH = "=~"
    NOT_MATCH = "!~"
    AND = "and"
    OR = "or"
    UNLESS = "unless"
    AT = "@"

    SUM = "sum"
    AVG = "avg"
    COUNT = "count"
    MIN = "min"
    MAX = "max"
    GROUP = "group"
    STDDEV = "stddev"
    STDVAR = "stdvar"
    TOPK = "topk"
    BOTTOMK = "bottomk"
    COUNT_VALUES = "count_values"
    QUANTILE = "quantile"
    LIMITK = "limitk"
    LIMIT_RATIO = "limit_ratio"

    OFFSET = "offset"
    SMOOTHED = "smoothed"
    ANCHORED = "anchored"
    BY = "by"
    WITHOUT = "without"
    ON = "on"
    IGNORING = "ignoring"
    GROUP_LEFT = "group_left"
    GROUP_RIGHT = "group_right"
    FILL = "fill"
    FILL_LEFT = "fill_left"
    FILL_RIGHT = "fill_right"
    BOOL = "bool"

    START = "start"
    FINISH = "end"
    STEP = "step"
    RANGE = "range"
    MAX_OF = "max_of"
    MIN_OF = "min_of"


def _from_to(first: Kind, last: Kind) -> frozenset[Kind]:
    kinds = list(Kind)
    return frozenset(kinds[kinds.index(first) : kinds.index(last) + 1])


OPERATORS: Final = _from_to(Kind.ADD, Kind.AT)
AGGREGATORS: Final = _from_to(Kind.SUM, Kind.LIMIT_RATIO)
MODIFIERS: Final = _from_to(Kind.OFFSET, Kind.BOOL)
CALLS_IN_DURATIONS: Final = _from_to(Kind.STEP, Kind.MIN_OF)
CALLABLE_KEYWORDS: Final = _from_to(Kind.START, Kind.MIN_OF)
FILLS: Final = _from_to(Kind.FILL, Kind.FILL_RIGHT)

PUNCTUATION: Final = {kind.value: kind for kind in Kind if not kind.value[0].isalpha()}
KEYWORDS: Final = {
    **{kind.value: kind for kind in _from_to(Kind.SUM, Kind.MIN_OF)},
    **{kind.value: kind for kind in (Kind.AND, Kind.OR, Kind.UNLESS, Kind.ATAN2)},
    "inf": Kind.NUMBER,
    "nan": Kind.NUMBER,
}

_NAMES = frozenset({Kind.IDENTIFIER, Kind.METRIC_IDENTIFIER})
_SET_OPERATORS = frozenset({Kind.AND, Kind.OR, Kind.UNLESS})
METRIC_NAMES: Final = (
    _NAMES
    | _SET_OPERATORS
    | AGGREGATORS
    | CALLABLE_KEYWORDS
    | FILLS
    | {Kind.BY, Kind.OFFSET, Kind.WITHOUT, Kind.ANCHORED, Kind.SMOOTHED}
)
"""Tokens that are accepted as a metric name. Some of them are keywords in other places."""
LABEL_NAMES: Final = (METRIC_NAMES - {Kind.WITHOUT}) | {
    Kind.ATAN2,
    Kind.BOOL,
    Kind.GROUP_LEFT,
    Kind.GROUP_RIGHT,
    Kind.IGNORING,
    Kind.ON,
}
"""Tokens that are accepted in a list of labels."""

_WITH_DESCRIPTION = frozenset({*_NAMES, Kind.STRING, Kind.NUMBER, Kind.DURATION})


@dataclass(slots=True)
class Token:
    """A token and its position in the text. Not frozen: `frozen=True` doubles the construction cost."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after the last character."""
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        """The positions that it covers."""
        return Span(self.start, self.end)

    def described(self) -> str:
        """The token as error messages show it."""
        if self.kind in _NAMES:
            return f"{self.kind.value} {quoted(self.text)}"
        if self.kind in _WITH_DESCRIPTION:
            return f"{self.kind.value} {shortened(self.text)}"
        if self.kind in MODIFIERS:
            return f"<{self.text}>"
        if self.kind in OPERATORS:
            return f"<op:{self.text}>"
        if self.kind in AGGREGATORS:
            return f"<aggr:{self.text}>"
        return shortened(self.text) if self.text else self.kind.value
