"""The parameters of a request, as in Prometheus: in the URL, in a posted form, or both.

An invalid parameter is answered with 400 and its name. Number and length of parameters are limited.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from strandline.index.matchers import InvalidMatcher, MatchOp, matches_empty
from strandline.index.selectors import InvalidSelector, parse_selector, require_a_non_empty_matcher
from strandline.node.http.errors import BadParameter, Refused
from strandline.node.http.requests import Request
from strandline.node.http.times import EARLIEST_MS, LATEST_MS, parse_step, parse_time
from strandline.node.query.shard_requests import Selector
from strandline.time_range import TimeRange

MAX_PARAMETERS: Final = 1000
MAX_SELECTORS: Final = 100
MAX_SELECTOR_LENGTH: Final = 64 << 10
_FORM = "application/x-www-form-urlencoded"
_SHOWN = 100
_PLAIN = (MatchOp.EQUAL, MatchOp.NOT_EQUAL)


class Parameters:
    """The parameters in order. Those of a form come before those of the URL."""

    __slots__ = ("_values", "pairs")

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs, self._values = tuple(pairs), dict[str, list[str]]()
        for name, value in self.pairs:
            self._values.setdefault(name, []).append(value)

    def all(self, name: str) -> list[str]:
        """All values of a parameter that may be repeated."""
        return self._values.get(name, [])

    def text(self, name: str) -> str | None:
        """The first value of a parameter; None if it is missing or empty."""
        values = self._values.get(name)
        return values[0] or None if values else None

    def required(self, name: str) -> str:
        """The first value of a parameter. Refused if it is missing or empty."""
        value = self.text(name)
        if value is None:
            raise BadParameter(f'the parameter "{name}" is missing')
        return value

    def time(self, name: str, default: int | None = None) -> int:
        """A time in milliseconds; required without a default."""
        written = self.required(name) if default is None else self.text(name)
        return default if written is None and default is not None else _read(name, written or "", parse_time)

    def duration(self, name: str, default: int | None = None) -> int:
        """A duration in milliseconds; required without a default."""
        written = self.required(name) if default is None else self.text(name)
        return default if written is None and default is not None else _read(name, written or "", parse_step)

    def timeout_s(self) -> float | None:
        """The client's timeout in seconds; None without one."""
        if self.text("timeout") is None:
            return None
        milliseconds = self.duration("timeout")
        if milliseconds <= 0:
            raise _wrong("timeout", self.required("timeout"), "not positive")
        return milliseconds / 1000

    def limit(self, maximum: int, *, default: int | None = None, name: str = "limit") -> int:
        """The limit of results, at most `maximum`. 0 means `maximum`; without the parameter, it is the default."""
        written = self.text(name)
        if written is None:
            return maximum if default is None else min(default, maximum)
        if not (written.isascii() and written.isdigit() and len(written) <= 18):
            raise _wrong(name, written, "not a non-negative integer")
        return min(int(written) or maximum, maximum)

    def time_range(self) -> TimeRange | None:
        """`start` to `end`, of which either may be missing; None if both are."""
        if self.text("start") is None and self.text("end") is None:
            return None
        first, last = self.time("start", EARLIEST_MS), self.time("end", LATEST_MS)
        if last < first:
            raise BadParameter('the parameter "end" lies before "start"', remedy="Swap them")
        return TimeRange(first, last)

    def selectors(self, *, required: bool) -> tuple[Selector, ...]:
        """The selectors of `match[]`. Each must have a matcher that does not match the empty string."""
        written = self.all("match[]")
        if required and not written:
            raise BadParameter(
                'no "match[]" is given', remedy='Select series, for example with match[]=up or match[]={job="a"}'
            )
        if len(written) > MAX_SELECTORS:
            raise BadParameter(
                f'"match[]" is given {len(written)} times, and at most {MAX_SELECTORS} are accepted',
                remedy="Combine values of one label in one selector, as a|b|c, or send several requests",
            )
        return tuple(dict.fromkeys(selector_of("match[]", selector) for selector in written))


async def parameters_of(request: Request) -> Parameters:
    """The parameters of the URL, and of the form if one was posted."""
    pairs = _pairs(request.query, "the URL")
    if request.method == "POST":
        pairs = _form_pairs(await request.body.read(), request.content_type, request.headers) + pairs
    return Parameters(pairs)


def parameters_of_url(request: Request) -> Parameters:
    """The parameters of the URL only, for a request whose body is not a form."""
    return Parameters(_pairs(request.query, "the URL"))


def selector_of(name: str, written: str) -> Selector:
    """A selector with a matcher that does not match the empty string. Raises `BadParameter`."""
    if len(written) > MAX_SELECTOR_LENGTH:
        raise BadParameter(
            f'the parameter "{name}" has {len(written)} characters, and at most {MAX_SELECTOR_LENGTH} are accepted'
        )
    try:
        matchers = parse_selector(written)
        require_a_non_empty_matcher(matchers)
        for matcher in matchers:
            # Expressions are parsed here, so that an invalid one is refused even if no shard can answer.
            if matcher.op not in _PLAIN:
                matches_empty(matcher)
    except (InvalidSelector, InvalidMatcher) as error:
        raise BadParameter(f'the parameter "{name}": {error.message}', remedy=error.remedy) from error
    return matchers


def _form_pairs(body: bytes, content_type: str, headers: Mapping[str, str]) -> list[tuple[str, str]]:
    if body and content_type != _FORM:
        raise Refused(415, "bad_data", f"a body of type {content_type[:_SHOWN]} is not accepted; post {_FORM}")
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refused(415, "bad_data", "a compressed form is not accepted")
    try:
        form = body.decode("ascii")
    except UnicodeDecodeError:
        raise BadParameter("the form has bytes that are not ASCII", remedy="Escape them as %xx") from None
    return _pairs(form, "the form")


def _pairs(written: str, where: str) -> list[tuple[str, str]]:
    if not written:
        return []
    if written.count("&") >= MAX_PARAMETERS:
        raise BadParameter(f"{where} has more than {MAX_PARAMETERS} parameters")
    pairs = []
    try:
        for parameter in written.split("&"):
            name, _, value = parameter.partition("=")
            if parameter:
                pairs.append((_unescaped(name), _unescaped(value)))
    except UnicodeDecodeError:
        raise BadParameter(f"{where} has a parameter that is not UTF-8") from None
    return pairs


def _unescaped(text: str) -> str:
    # `unquote` uses a regular expression and takes twice as long.
    return unquote_to_bytes(text.replace("+", " ")).decode() if "%" in text or "+" in text else text


def _read(name: str, written: str, read: Callable[[str], int]) -> int:
    try:
        return read(written)
    except ValueError as error:
        raise _wrong(name, written, str(error)) from None


def _wrong(name: str, written: str, fault: str) -> BadParameter:
    shown = written if len(written) <= _SHOWN else written[:_SHOWN] + "..."
    return BadParameter(f'the parameter "{name}" is {fault}: {shown!r}')
