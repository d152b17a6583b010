"""The tree of an expression. Every node knows which part of the text it was written as."""

from dataclasses import dataclass
from enum import StrEnum

from strandline.index.matchers import Matcher
from strandline.promql.functions import Function
from strandline.promql.value_types import ValueType


@dataclass(frozen=True, slots=True)
class Span:
    """From `start` up to, not including, `end`: places in the text, counted in code points from 0."""

    start: int
    end: int


class Operator(StrEnum):
    """Binary operators, as they are written."""

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
    AND = "and"
    OR = "or"
    UNLESS = "unless"

    @property
    def is_set(self) -> bool:
        """Whether it works on label sets, and never on values."""
        return self in _SETS

    @property
    def is_comparison(self) -> bool:
        """Whether it filters, or with `bool` gives 0 and 1."""
        return self in _COMPARISONS


_SETS = frozenset({Operator.AND, Operator.OR, Operator.UNLESS})
_COMPARISONS = frozenset(
    {
        Operator.EQUAL,
        Operator.NOT_EQUAL,
        Operator.GREATER,
        Operator.LESS,
        Operator.GREATER_EQUAL,
        Operator.LESS_EQUAL,
    }
)


class Aggregator(StrEnum):
    """Aggregations over series, as they are written."""

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
    LIMITK = "limitk"
    LIMIT_RATIO = "limit_ratio"
    QUANTILE = "quantile"
    COUNT_VALUES = "count_values"


class Cardinality(StrEnum):
    """How many series of one side of an operator may meet one of the other."""

    ONE_TO_ONE = "one-to-one"
    MANY_TO_ONE = "many-to-one"
    ONE_TO_MANY = "one-to-many"
    MANY_TO_MANY = "many-to-many"


@dataclass(frozen=True, slots=True)
class Matching:
    """By which labels series of two sides meet: those in `labels` with `is_on`, otherwise all but those. `include` are
    the labels that `group_left` and `group_right` copy from the "one" side. Set operators are MANY_TO_MANY.
    """

    cardinality: Cardinality = Cardinality.ONE_TO_ONE
    labels: tuple[str, ...] = ()
    is_on: bool = False
    include: tuple[str, ...] = ()


class DurationOperator(StrEnum):
    """Arithmetic in durations."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"
    POWER = "^"
    MIN_OF = "min_of"
    MAX_OF = "max_of"


@dataclass(frozen=True, slots=True)
class DurationNumber:
    """Seconds: written as a duration (5m) or as a number (300)."""

    seconds: float
    span: Span
    is_duration: bool = True


@dataclass(frozen=True, slots=True)
class DurationStep:
    """`step()`: the step of the query."""

    span: Span


@dataclass(frozen=True, slots=True)
class DurationRange:
    """`range()`: the length of the query."""

    span: Span


@dataclass(frozen=True, slots=True)
class DurationNegation:
    """`-duration`."""

    inner: "Duration"
    span: Span


@dataclass(frozen=True, slots=True)
class DurationArithmetic:
    """Two durations and what is between them."""

    operator: DurationOperator
    left: "Duration"
    right: "Duration"
    span: Span


@dataclass(frozen=True, slots=True)
class DurationParentheses:
    """`(duration)`; several around the same are one."""

    inner: "Duration"
    span: Span


Duration = DurationNumber | DurationStep | DurationRange | DurationNegation | DurationArithmetic | DurationParentheses


class AtBound(StrEnum):
    """A bound of the whole query, however deep `@` stands."""

    START = "start"
    END = "end"


At = int | AtBound
"""What `@` pins a selector to: milliseconds since the epoch, or a bound."""


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number, or a duration as a number of seconds."""

    value: float
    span: Span
    is_duration: bool = False


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """A string. Bytes of it that are not UTF-8 are lone surrogates, as `surrogateescape` makes them: labels can't have
    them, and `go_text.as_utf8` replaces them for output.
    """

    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class VectorSelector:
    """A metric's name, matchers, or both. `matchers` has the name, too: as the last one, if it stood before braces."""

    name: str
    matchers: tuple[Matcher, ...]
    span: Span
    offset: Duration | None = None
    at: At | None = None


@dataclass(frozen=True, slots=True)
class MatrixSelector:
    """A selector with a range behind it. `offset` and `@` are the selector's."""

    selector: VectorSelector
    range: Duration
    span: Span


@dataclass(frozen=True, slots=True)
class Subquery:
    """`inner[range:step]`; without a step the default interval."""

    inner: "Expression"
    range: Duration
    step: Duration | None
    span: Span
    offset: Duration | None = None
    at: At | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments."""

    function: Function
    arguments: tuple["Expression", ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Aggregation:
    """`sum by (job) (...)`. `labels` are kept, or with `is_without` dropped; `parameter` is the first argument of those
    that take two.
    """

    aggregator: Aggregator
    inner: "Expression"
    parameter: "Expression | None"
    labels: tuple[str, ...]
    is_without: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """Two sides and an operator. `matching` is None unless both are vectors."""

    operator: Operator
    left: "Expression"
    right: "Expression"
    span: Span
    returns_bool: bool = False
    matching: Matching | None = None


@dataclass(frozen=True, slots=True)
class Negation:
    """`-inner`, or with `is_plus` `+inner`."""

    inner: "Expression"
    span: Span
    is_plus: bool = False


@dataclass(frozen=True, slots=True)
class Parentheses:
    """`(inner)`."""

    inner: "Expression"
    span: Span


Expression = (
    NumberLiteral
    | StringLiteral
    | VectorSelector
    | MatrixSelector
    | Subquery
    | Call
    | Aggregation
    | Binary
    | Negation
    | Parentheses
)


def type_of(expression: Expression) -> ValueType:  # noqa: PLR0911 - one for each kind
    """What a checked expression gives."""
    match expression:
        case NumberLiteral():
            return ValueType.SCALAR
        case StringLiteral():
            return ValueType.STRING
        case VectorSelector() | Aggregation():
            return ValueType.VECTOR
        case MatrixSelector() | Subquery():
            return ValueType.MATRIX
        case Call(function=function):
            return function.returns
        case Negation(inner=inner) | Parentheses(inner=inner):
            return type_of(inner)
        case Binary(left=left, right=right):
            # The right side first: chains are deep on the left.
            if type_of(right) is not ValueType.SCALAR:
                return ValueType.VECTOR
            return ValueType.SCALAR if type_of(left) is ValueType.SCALAR else ValueType.VECTOR
