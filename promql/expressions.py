"""The syntax tree of an expression. Every node has its position in the text."""

from dataclasses import dataclass
from enum import StrEnum

from strandline.index.matchers import Matcher
from strandline.promql.functions import Function
from strandline.promql.value_types import ValueType


@dataclass(frozen=True, slots=True)
class Span:
    """From `start` up to, not including, `end`: positions in the text in code points, from 0."""

    start: int
    end: int


class Operator(StrEnum):
    """Binary operators. The value is the operator's text."""

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
        """Whether it is a set operator, which ignores values."""
        return self in _SETS

    @property
    def is_comparison(self) -> bool:
        """Whether it is a comparison, which filters, or returns 0 and 1 with `bool`."""
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
    """Aggregations over series. The value is the aggregation's text."""

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
    """How many series of one side of an operator may match a series of the other side."""

    ONE_TO_ONE = "one-to-one"
    MANY_TO_ONE = "many-to-one"
    ONE_TO_MANY = "one-to-many"
    MANY_TO_MANY = "many-to-many"


@dataclass(frozen=True, slots=True)
class Matching:
    """Vector matching: by the labels in `labels` with `is_on`, otherwise by all other labels. `include` are the labels
    that `group_left` and `group_right` copy from the "one" side. Set operators are MANY_TO_MANY.
    """

    cardinality: Cardinality = Cardinality.ONE_TO_ONE
    labels: tuple[str, ...] = ()
    is_on: bool = False
    include: tuple[str, ...] = ()


class DurationOperator(StrEnum):
    """Operators of duration arithmetic."""

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
    """Seconds, from a duration (5m) or a number (300)."""

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
    """An operator between two durations."""

    operator: DurationOperator
    left: "Duration"
    right: "Duration"
    span: Span


@dataclass(frozen=True, slots=True)
class DurationParentheses:
    """`(duration)`. Nested parentheses are one node."""

    inner: "Duration"
    span: Span


Duration = DurationNumber | DurationStep | DurationRange | DurationNegation | DurationArithmetic | DurationParentheses


class AtBound(StrEnum):
    """The start or end of the query, also within subqueries."""

    START = "start"
    END = "end"


At = int | AtBound
"""The evaluation timestamp that `@` sets: milliseconds since the epoch, or a bound of the query."""


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number, or a duration as a number of seconds."""

    value: float
    span: Span
    is_duration: bool = False


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """A string. Bytes that are not UTF-8 are lone surrogates (Python's `surrogateescape`). Labels can't contain them,
    and `go_text.as_utf8` replaces them for output.
    """

    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class VectorSelector:
    """An instant vector selector: a metric name, matchers, or both. `matchers` includes the name, as the last one if it
    was before the braces.
    """

    name: str
    matchers: tuple[Matcher, ...]
    span: Span
    offset: Duration | None = None
    at: At | None = None


@dataclass(frozen=True, slots=True)
class MatrixSelector:
    """A range vector selector. `offset` and `@` belong to `selector`."""

    selector: VectorSelector
    range: Duration
    span: Span


@dataclass(frozen=True, slots=True)
class Subquery:
    """`inner[range:step]`. Without a step, the default interval applies."""

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
    """`sum by (job) (...)`. The grouping labels in `labels` are kept, or dropped with `is_without`. `parameter` is the
    first argument of aggregations with two arguments.
    """

    aggregator: Aggregator
    inner: "Expression"
    parameter: "Expression | None"
    labels: tuple[str, ...]
    is_without: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two expressions. `matching` is None unless both are vectors."""

    operator: Operator
    left: "Expression"
    right: "Expression"
    span: Span
    returns_bool: bool = False
    matching: Matching | None = None


@dataclass(frozen=True, slots=True)
class Negation:
    """`-inner`, or `+inner` with `is_plus`."""

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
    """The type of a checked expression."""
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
            # The right side first: chains of operators are deep on the left side.
            if type_of(right) is not ValueType.SCALAR:
                return ValueType.VECTOR
            return ValueType.SCALAR if type_of(left) is ValueType.SCALAR else ValueType.VECTOR
