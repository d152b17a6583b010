"""Durations: the values of literals, formatting, and the evaluation of duration arithmetic for a query."""

import math
import re

from strandline.promql.errors import ParseError, parse_error
from strandline.promql.expressions import (
    Duration,
    DurationArithmetic,
    DurationNegation,
    DurationNumber,
    DurationOperator,
    DurationParentheses,
    DurationRange,
    DurationStep,
    Span,
)
from strandline.promql.go_text import quoted

_NANOSECONDS = 1_000_000_000
_PART = re.compile(r"([0-9]+)([^0-9]+)")
# In descending order, which literals have to follow.
_UNITS = {
    "y": 365 * 86400 * _NANOSECONDS,
    "w": 7 * 86400 * _NANOSECONDS,
    "d": 86400 * _NANOSECONDS,
    "h": 3600 * _NANOSECONDS,
    "m": 60 * _NANOSECONDS,
    "s": _NANOSECONDS,
    "ms": _NANOSECONDS // 1000,
}
_ORDER = {unit: index for index, unit in enumerate(_UNITS)}
_MAX_NANOSECONDS = (1 << 63) - 1
_MAX_SECONDS = (1 << 63) / _NANOSECONDS


def duration_seconds(text: str) -> float:
    """The seconds of a literal such as 1h30m. Raises `ValueError` with Prometheus' message."""
    total, position, last = 0, 0, -1
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise ValueError(f"not a valid duration string: {quoted(text)}")
        count, unit = part.groups()
        if len(count) > 20 or int(count) >= 1 << 64:
            raise ValueError(f"not a valid duration string: {quoted(text)}")
        if unit not in _UNITS:
            raise ValueError(f"unknown unit {quoted(unit)} in duration {quoted(text)}")
        if _ORDER[unit] <= last:
            raise ValueError(f"not a valid duration string: {quoted(text)}")
        last, position = _ORDER[unit], part.end()
        total += int(count) * _UNITS[unit]
        if total > _MAX_NANOSECONDS:
            raise ValueError("duration out of range")
    return total // _NANOSECONDS + (total % _NANOSECONDS) / _NANOSECONDS


def is_out_of_range(seconds: float) -> bool:
    """Whether the seconds overflow Prometheus' 64-bit nanoseconds."""
    return not -_MAX_SECONDS <= seconds <= _MAX_SECONDS


def printed(seconds: float) -> str:
    """As a literal with a resolution of milliseconds: 90m is 1h30m."""
    return printed_milliseconds(_truncated_milliseconds(seconds))


def printed_milliseconds(milliseconds: int) -> str:
    """As a literal. Years and weeks are used only for exact multiples: 90d, not 12w6d."""
    if milliseconds == 0:
        return "0s"
    rest, parts = abs(milliseconds), []
    for unit, nanoseconds in _UNITS.items():
        count, left = divmod(rest, nanoseconds // 1_000_000)
        if count and not (unit in "yw" and left):
            parts.append(f"{count}{unit}")
            rest = left
    return ("-" if milliseconds < 0 else "") + "".join(parts)


def literal_milliseconds(duration: DurationNumber) -> int:
    """The value of a literal in a selector: rounded to nanoseconds, then truncated to milliseconds."""
    return _truncate_nanoseconds(literal_nanoseconds(duration))


def literal_nanoseconds(duration: DurationNumber) -> int:
    """The value of a literal in a selector before it is truncated to milliseconds."""
    return round_half_away(duration.seconds * _NANOSECONDS)


def milliseconds(duration: Duration, *, query: str, step_ms: int, range_ms: int, may_be_negative: bool = False) -> int:
    """The value of a duration in a query with this step and range (both 0 for an instant query).

    `query` is the text of the query. Raises `ParseError` if the duration is not finite, out of range, or not positive;
    an offset `may_be_negative`.
    """
    if isinstance(duration, DurationNumber):
        return literal_milliseconds(duration)
    seconds = _Evaluation(query, step_ms / 1000, range_ms / 1000).seconds(duration)
    if math.isnan(seconds) or math.isinf(seconds):
        raise parse_error(query, duration.span, "duration is NaN or infinite")
    if seconds <= 0 and not may_be_negative:
        raise parse_error(query, duration.span, "duration must be greater than 0")
    if is_out_of_range(seconds):
        raise parse_error(query, duration.span, "duration is out of range")
    return int(seconds * 1000)


class _Evaluation:
    def __init__(self, query: str, step: float, range_: float) -> None:
        self._query = query
        self._step = step
        self._range = range_

    def seconds(self, duration: Duration) -> float:
        match duration:
            case DurationNumber(seconds=seconds):
                return seconds
            case DurationStep():
                return self._step
            case DurationRange():
                return self._range
            case DurationNegation(inner=inner):
                return -self.seconds(inner)
            case DurationParentheses(inner=inner):
                return self.seconds(inner)
            case DurationArithmetic(operator=operator, left=left, right=right, span=span):
                return self._arithmetic(operator, self.seconds(left), self.seconds(right), span)

    def _arithmetic(self, operator: DurationOperator, left: float, right: float, span: Span) -> float:  # noqa: PLR0911
        match operator:
            case DurationOperator.ADD:
                return left + right
            case DurationOperator.SUBTRACT:
                return left - right
            case DurationOperator.MULTIPLY:
                return left * right
            case DurationOperator.DIVIDE:
                if right == 0:
                    raise self._error(span, "division by zero")
                return left / right
            case DurationOperator.MODULO:
                if right == 0:
                    raise self._error(span, "modulo by zero")
                return math.nan if math.isinf(left) else math.fmod(left, right)
            case DurationOperator.POWER:
                return _power(left, right)
            case DurationOperator.MIN_OF:
                return math.nan if math.isnan(left) or math.isnan(right) else min(left, right)
            case DurationOperator.MAX_OF:
                return math.nan if math.isnan(left) or math.isnan(right) else max(left, right)

    def _error(self, span: Span, fault: str) -> ParseError:
        return parse_error(self._query, span, fault)


def _power(base: float, exponent: float) -> float:
    """IEEE 754 power: no exceptions, and NaN for a fractional power of a negative number."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def round_half_away(value: float) -> int:
    """To the nearest integer, with halves away from zero, like Go's `math.Round`."""
    fraction, whole = math.modf(abs(value))
    rounded = int(whole) + (fraction >= 0.5)
    return rounded if value >= 0 else -rounded


def _truncated_milliseconds(seconds: float) -> int:
    return _truncate_nanoseconds(int(seconds * _NANOSECONDS))


def _truncate_nanoseconds(nanoseconds: int) -> int:
    """Towards zero."""
    cut = abs(nanoseconds) // 1_000_000
    return cut if nanoseconds >= 0 else -cut
