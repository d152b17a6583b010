"""Formats expressions as text: on one line, or broken into lines like Prometheus' `format_query`."""

import re
from typing import Final

from strandline.index.matchers import Matcher, MatchOp
from strandline.index.selectors import METRIC_NAME
from strandline.promql.durations import literal_milliseconds, literal_nanoseconds, printed, printed_milliseconds
from strandline.promql.expressions import (
    Aggregation,
    At,
    Binary,
    Call,
    Cardinality,
    Duration,
    DurationArithmetic,
    DurationNegation,
    DurationNumber,
    DurationOperator,
    DurationParentheses,
    DurationRange,
    DurationStep,
    Expression,
    Matching,
    MatrixSelector,
    Negation,
    NumberLiteral,
    Parentheses,
    StringLiteral,
    Subquery,
    VectorSelector,
)
from strandline.promql.go_text import plain_number, quoted

LINE_LENGTH: Final = 100
"""Expressions with more bytes of UTF-8 are broken into lines."""

_INDENT = "  "
_PLAIN_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NEVER_PLAIN = frozenset({"without", "inf", "nan"})
"""Words that are keywords or numbers even in a list of labels."""


def print_expression(expression: Expression) -> str:  # noqa: PLR0911 - one for each kind
    """The expression on one line. Parsing it results in the same tree."""
    match expression:
        case NumberLiteral(value=value, is_duration=is_duration):
            return printed(value) if is_duration else plain_number(value)
        case StringLiteral(value=value):
            return _string(value)
        case VectorSelector():
            return _selector(expression) + _at_and_offset(expression.at, expression.offset)
        case MatrixSelector(selector=selector):
            suffix = _at_and_offset(selector.at, selector.offset)
            return f"{_selector(selector)}[{_range(expression.range)}]{suffix}"
        case Subquery(inner=inner):
            return print_expression(inner) + _subquery_suffix(expression)
        case Call(function=function, arguments=arguments):
            return f"{function.name}({', '.join(map(print_expression, arguments))})"
        case Aggregation(inner=inner, parameter=parameter):
            first = "" if parameter is None else f"{print_expression(parameter)}, "
            return f"{_aggregator(expression)}({first}{print_expression(inner)})"
        case Binary(left=left, right=right):
            return f"{print_expression(left)} {_operator(expression)} {print_expression(right)}"
        case Negation(inner=inner, is_plus=is_plus):
            return ("+" if is_plus else "-") + print_expression(inner)
        case Parentheses(inner=inner):
            return f"({print_expression(inner)})"


def format_query(expression: Expression) -> str:
    """The expression as Prometheus formats it: one that exceeds a line is broken, and its parts are indented."""
    return _formatted(expression, 0)


def _formatted(expression: Expression, level: int) -> str:  # noqa: PLR0911 - one for each kind
    indent = _INDENT * level
    line = print_expression(expression)
    if isinstance(expression, Negation):
        return f"{indent}{'+' if expression.is_plus else '-'}{_formatted(expression.inner, level).strip()}"
    fits = len(line.encode()) <= LINE_LENGTH
    if isinstance(expression, Subquery):
        # Not indented if it fits, as in Prometheus.
        return line if fits else _formatted(expression.inner, level) + _subquery_suffix(expression)
    if fits:
        return indent + line
    match expression:
        case Aggregation(inner=inner, parameter=parameter):
            first = "" if parameter is None else f"{_formatted(parameter, level + 1)},\n"
            return f"{indent}{_aggregator(expression)}(\n{first}{_formatted(inner, level + 1)}\n{indent})"
        case Binary(left=left, right=right):
            sides = _formatted(left, level + 1), _formatted(right, level + 1)
            return f"{sides[0]}\n{indent}{_operator(expression)}\n{sides[1]}"
        case Call(function=function, arguments=arguments):
            lines = ",\n".join([_formatted(argument, level + 1) for argument in arguments])
            return f"{indent}{function.name}(\n{lines}\n{indent})"
        case Parentheses(inner=inner):
            return f"{indent}(\n{_formatted(inner, level + 1)}\n{indent})"
        case _:
            return indent + line


def _string(text: str) -> str:
    # The lexer rejects U+FFFD unless it is escaped.
    return quoted(text).replace(chr(0xFFFD), r"\ufffd")


def _selector(selector: VectorSelector) -> str:
    matchers = ",".join(
        sorted([print_matcher(matcher) for matcher in selector.matchers if not _is_name(selector, matcher)])
    )
    return f"{selector.name}{{{matchers}}}" if matchers else selector.name


def _is_name(selector: VectorSelector, matcher: Matcher) -> bool:
    is_of_name = matcher.label == METRIC_NAME and matcher.op is MatchOp.EQUAL
    return bool(matcher.value) and is_of_name and matcher.value == selector.name


def print_matcher(matcher: Matcher) -> str:
    plain = _PLAIN_LABEL.fullmatch(matcher.label)
    return f"{matcher.label if plain else _string(matcher.label)}{matcher.op}{_string(matcher.value)}"


def _at_and_offset(at: At | None, offset: Duration | None) -> str:
    """`@` and `offset`. A literal offset of 0 is omitted."""
    suffix = ""
    if isinstance(at, int):
        suffix = f" @ {at / 1000:.3f}"
    elif at is not None:
        suffix = f" @ {at}()"
    if offset is None or (isinstance(offset, DurationNumber) and not literal_nanoseconds(offset)):
        return suffix
    return f"{suffix} offset {_range(offset)}"


def _subquery_suffix(subquery: Subquery) -> str:
    step = "" if subquery.step is None else _range(subquery.step)
    return f"[{_range(subquery.range)}:{step}]{_at_and_offset(subquery.at, subquery.offset)}"


def _range(duration: Duration) -> str:
    """A duration in a selector. A number alone is printed as a duration; a number in arithmetic is not."""
    if isinstance(duration, DurationNumber):
        return printed_milliseconds(literal_milliseconds(duration))
    return print_duration(duration)


def print_duration(duration: Duration) -> str:  # noqa: PLR0911 - one for each kind
    """Duration arithmetic as text."""
    match duration:
        case DurationNumber(seconds=seconds, is_duration=is_duration):
            return printed(seconds) if is_duration else plain_number(seconds)
        case DurationStep():
            return "step()"
        case DurationRange():
            return "range()"
        case DurationNegation(inner=inner):
            return f"-{print_duration(inner)}"
        case DurationParentheses(inner=inner):
            return f"({print_duration(inner)})"
        case DurationArithmetic(operator=operator, left=left, right=right):
            sides = print_duration(left), print_duration(right)
            if operator in (DurationOperator.MIN_OF, DurationOperator.MAX_OF):
                return f"{operator}({sides[0]}, {sides[1]})"
            return f"{sides[0]} {operator} {sides[1]}"


def _aggregator(aggregation: Aggregation) -> str:
    if aggregation.is_without:
        return f"{aggregation.aggregator} without ({_labels(aggregation.labels)}) "
    if aggregation.labels:
        return f"{aggregation.aggregator} by ({_labels(aggregation.labels)}) "
    return aggregation.aggregator.value


def _operator(binary: Binary) -> str:
    return f"{binary.operator}{' bool' if binary.returns_bool else ''}{_matching(binary.matching)}"


def _matching(matching: Matching | None) -> str:
    if matching is None:
        return ""
    is_grouped = matching.cardinality in (Cardinality.MANY_TO_ONE, Cardinality.ONE_TO_MANY)
    text = ""
    if matching.labels or matching.is_on or is_grouped:
        text = f" {'on' if matching.is_on else 'ignoring'} ({_labels(matching.labels)})"
    if is_grouped:
        side = "left" if matching.cardinality is Cardinality.MANY_TO_ONE else "right"
        text += f" group_{side} ({_labels(matching.include)})"
    return text


def _labels(labels: tuple[str, ...]) -> str:
    return ", ".join([_label(label) for label in labels])


def _label(label: str) -> str:
    is_plain = _PLAIN_LABEL.fullmatch(label) and label.lower() not in _NEVER_PLAIN
    return label if is_plain else _string(label)
