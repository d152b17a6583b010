"""Parses series with values in the notation of test scripts: `http_requests{job="a"} 0+10x5 _ stale 7`."""

import math
import re

from strandline.index.matchers import MatchOp
from strandline.index.selectors import METRIC_NAME
from strandline.promql.errors import ParseError
from strandline.promql.number_syntax import number_value
from strandline.promql.selector_parser import take_matchers
from strandline.promql.testing.commands import Labels, SeriesLine
from strandline.promql.token_stream import TokenStream
from strandline.promql.values import STALE

MAX_VALUES = 1_000_000
"""The limit for one series, so that a typo in a count does not exhaust the memory."""

_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_NUMBER = r"(?:(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|nan)"
_ITEM = re.compile(
    rf"(?:(?P<blank>_)|(?P<stale>stale)|(?P<value>[+-]?{_NUMBER})(?P<step>[+-]{_NUMBER})?)(?:x(?P<count>[0-9]+))?",
    re.IGNORECASE | re.ASCII,
)
_HISTOGRAM = re.compile(r"\{\{[^}]*\}\}(?:(?P<step>[+-]\{\{[^}]*\}\})?x(?P<count>[0-9]+))?")
_SPACE = re.compile(r"[ \t]+")


def parse_series(text: str) -> SeriesLine:
    """A series and its values. Raises `ValueError`."""
    labels, end = parse_labels(text)
    values: list[float | None] = []
    histograms: list[int] = []
    while space := _SPACE.match(text, end):
        if space.end() == len(text):
            break
        start = space.end()
        if item := _HISTOGRAM.match(text, start):
            found = _repeated(None, item["count"], first=1)
            histograms += range(len(values), len(values) + len(found))
            values += found
        elif item := _ITEM.match(text, start):
            values += _expanded(item)
        end = item.end() if item else start
        if item is None or (end < len(text) and text[end] not in " \t"):
            word = text[start:].split(maxsplit=1)[0]
            raise ValueError(f"{word!r} is not a value: write 5, 1+2x3, 5x3, _, _x3, stale, NaN, Inf or {{{{...}}}}")
        if len(values) > MAX_VALUES:
            raise ValueError(f"the series has more than {MAX_VALUES:,} values")
    else:
        if end < len(text):
            raise ValueError(f"unexpected {text[end:]!r} after the labels of the series")
    return SeriesLine(labels, tuple(values), tuple(histograms))


def parse_labels(text: str) -> tuple[Labels, int]:
    """The labels of a series at the start of a text, and the position after them. Raises `ValueError`."""
    found: dict[str, str] = {}
    end = 0
    if name := _NAME.match(text):
        found[METRIC_NAME], end = name.group(), name.end()
    if text.startswith("{", end):
        tokens = TokenStream(text[end:])
        try:
            matchers = take_matchers(tokens)
        except ParseError as error:
            raise ValueError(error.fault) from error
        for matcher in matchers:
            if matcher.op is not MatchOp.EQUAL:
                raise ValueError(f"the label {matcher.label} of a series needs =, not {matcher.op}")
            if matcher.label in found:
                raise ValueError(f"duplicate label {matcher.label}")
            found[matcher.label] = matcher.value
        end += tokens.end
    elif not end:
        raise ValueError(f'{text!r} does not start with a series, such as up or {{job="a"}}')
    return {label: value for label, value in found.items() if value}, end


def parse_number(text: str) -> float:
    """A number, which is the only content of a line. Raises `ValueError`."""
    sign = -1.0 if text.startswith("-") else 1.0
    return sign * number_value(text[1:] if text[:1] in ("+", "-") else text)


def _expanded(item: re.Match[str]) -> list[float | None]:
    if item["blank"]:
        return _repeated(None, item["count"], first=0)
    if item["stale"]:
        return _repeated(STALE, item["count"], first=1)
    value = _number(item["value"])
    if item["step"] is None:
        return _repeated(value, item["count"], first=1)
    if item["count"] is None:
        raise ValueError(f"{item.group()!r} has a step but no count: write {item.group()}x10")
    step, values = _number(item["step"]), list[float | None]()
    for _ in range(_count(item["count"], first=1)):
        values.append(value)
        value += step
    return values


def _repeated(value: float | None, count: str | None, *, first: int) -> list[float | None]:
    return [value] * (1 if count is None else _count(count, first=first))


def _count(text: str, *, first: int) -> int:
    """The number of values: `5x3` means one value and three more, but `_x3` means three values."""
    count = int(text[: len(str(MAX_VALUES)) + 1]) + first
    if count > MAX_VALUES:
        raise ValueError(f"the series has more than {MAX_VALUES:,} values")
    return count


def _number(text: str) -> float:
    value = parse_number(text.replace("_", ""))
    return math.nan if math.isnan(value) else value
