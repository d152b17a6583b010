"""What of PromQL is answered here: a selector, with a range, `offset` and `@`; and constants, which health checks send.

Everything else is refused in words that say where all of PromQL is to be had.
"""

import re
from dataclasses import dataclass
from typing import Final

from strandline.errors import StrandlineError
from strandline.node.http.api.constants import NotConstantError, constant_value
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import MAX_SELECTOR_LENGTH, selector_of
from strandline.node.http.times import parse_step, parse_time
from strandline.node.query.asks import Selector

_BLANK = r"(?:[ \t\r\n]|#[^\r\n]*)*+"
_STRING = r""""(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|`[^`]*+`"""
# A metric's name, braces, or both, however wrong what is in the braces may be: that is for others to say.
_SELECTOR = re.compile(
    rf"{_BLANK}(?:[A-Za-z_:][A-Za-z0-9_:]*+)?{_BLANK}(?:\{{(?:{_STRING}|#[^\r\n]*|[^\}}\"'`#])*+\}})?{_BLANK}"
)
_RANGE = re.compile(rf"\[{_BLANK}([0-9a-z.]++){_BLANK}\]{_BLANK}")
_OFFSET = re.compile(rf"offset{_BLANK}(-?){_BLANK}([0-9a-z.]++){_BLANK}", re.IGNORECASE)
_AT = re.compile(
    rf"@{_BLANK}(?:([+-]?[0-9.]++(?:e[+-]?[0-9]+)?)|(start|end){_BLANK}\({_BLANK}\)){_BLANK}", re.IGNORECASE
)
_REMEDY: Final = (
    'Only a selector is answered here, such as up{job="a"}, up[5m] or up offset 1h. For all of PromQL put a Prometheus '
    "in front that has this node's /api/v1/read in its remote_read"
)
_SHOWN = 100
# Around a selector: more than anybody writes.
_MOST_PARENTHESES = 10


@dataclass(frozen=True, slots=True)
class Constant:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Selection:
    """A selector. `span` is its range in milliseconds, None for one without. It is looked at `offset` earlier than it
    is asked for, and, if `at` is given, as of that moment whatever is asked for: "start" or "end" of the query, or a
    time.
    """

    selector: Selector
    span: int | None = None
    offset: int = 0
    at: int | str | None = None

    def moment(self, asked: int, start: int, end: int) -> int:
        """Which moment is looked at for the one that is asked for, by a query from `start` to `end`."""
        match self.at:
            case "start":
                pinned = start
            case "end":
                pinned = end
            case int():
                pinned = self.at
            case _:
                pinned = asked
        return pinned - self.offset


Expression = Constant | Selection


def parse_expression(written: str) -> Expression:
    """Raises `BadParameter`."""
    if len(written) > MAX_SELECTOR_LENGTH:
        raise BadParameter(
            f'the parameter "query" has {len(written)} characters, and at most {MAX_SELECTOR_LENGTH} are taken'
        )
    try:
        return Constant(constant_value(written))
    except NotConstantError:
        inner = _within_parentheses(written)
        if inner == written.strip():
            return _selection(written)
        try:
            return _selection(inner)
        except BadParameter:
            raise _not_plain(written, "there is something else than a selector in the parentheses") from None


def _within_parentheses(written: str) -> str:
    """Without those around all of it, which mean nothing. What is left of `(a) or (b)` is no selector, as before."""
    inner = written.strip()
    for _ in range(_MOST_PARENTHESES):
        if not (inner.startswith("(") and inner.endswith(")")):
            break
        inner = inner[1:-1].strip()
    return inner


def _selection(written: str) -> Selection:
    found = _SELECTOR.match(written)
    end = found.end() if found else 0
    # What is left of the text decides what is complained about: `sum(up)` is no selector, and neither is `{a="b`.
    modifiers = _Modifiers.read(written, end)
    try:
        selector = selector_of("query", written[:end] if modifiers is not None else written)
    except StrandlineError as error:
        raise _not_plain(written, error.message) from error
    if modifiers is None:
        raise _not_plain(written, f"{written[end : end + 20]!r} stands behind the selector")
    return Selection(selector, modifiers.span, modifiers.offset or 0, modifiers.at)


@dataclass(slots=True)
class _Modifiers:
    """What stands behind a selector: a range first, then `offset` and `@`, each once."""

    span: int | None = None
    offset: int | None = None
    at: int | str | None = None

    @classmethod
    def read(cls, written: str, position: int) -> "_Modifiers | None":
        """None if there is anything else."""
        found = cls()
        if ranged := _RANGE.match(written, position):
            found.span = _duration(written, ranged[1])
            if found.span == 0:
                raise _not_plain(written, "a range has to be longer than 0")
            position = ranged.end()
        while position < len(written):
            if (offset := _OFFSET.match(written, position)) and found.offset is None:
                distance = _duration(written, offset[2])
                found.offset = -distance if offset[1] else distance
                position = offset.end()
            elif (pinned := _AT.match(written, position)) and found.at is None:
                found.at = pinned[2].lower() if pinned[2] else _moment(written, pinned[1])
                position = pinned.end()
            else:
                return None
        return found


def _duration(written: str, duration: str) -> int:
    try:
        return parse_step(duration)
    except ValueError as error:
        raise _not_plain(written, f"{duration!r} is {error}") from None


def _moment(written: str, moment: str) -> int:
    try:
        return parse_time(moment)
    except ValueError as error:
        raise _not_plain(written, f"{moment!r} is {error}") from None


def _not_plain(written: str, why: str) -> BadParameter:
    shown = written if len(written) <= _SHOWN else written[:_SHOWN] + "..."
    return BadParameter(f'the parameter "query" is not a plain selector: {shown!r}: {why}', remedy=_REMEDY)
