"""Parses test scripts into commands. Raises `ScriptError` with the line."""

import re
from collections.abc import Sequence

from strandline.index.selectors import METRIC_NAME
from strandline.promql.durations import duration_seconds
from strandline.promql.errors import ParseError
from strandline.promql.lexer import Lexer
from strandline.promql.literals import string_value
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.testing.commands import (
    Clear,
    Command,
    Evaluation,
    Expected,
    ExpectedAnnotations,
    ExpectedMessage,
    Labels,
    Load,
    SeriesLine,
    Unsupported,
)
from strandline.promql.testing.errors import ScriptError
from strandline.promql.testing.series_notation import parse_labels, parse_number, parse_series
from strandline.promql.tokens import Kind

NATIVE_HISTOGRAMS = "native histograms"
START_TIMESTAMPS = "start timestamps"

_LOAD = re.compile(r"load(?P<histograms>_with_nhcb)?\s+(?P<step>\S+)")
_INSTANT = re.compile(r"eval(?:_(?P<form>fail|warn|ordered|info))?\s+instant\s+at\s+(?P<at>\S+)\s+(?P<query>.+)")
_RANGE = re.compile(
    r"eval(?:_(?P<form>fail|warn|info))?\s+range\s+from\s+(?P<start>\S+)\s+to\s+(?P<end>\S+)\s+step\s+(?P<step>\S+)"
    r"\s+(?P<query>.+)"
)
_EXPECT = re.compile(
    r"expect\s+(?P<what>ordered|fail|warn|no_warn|info|no_info)(?:\s+(?P<how>regex|msg):(?P<message>.+))?"
)
_EXPECT_POINTS = re.compile(r"expect range vector\s+from\s+(?P<start>\S+)\s+to\s+(?P<end>\S+)\s+step\s+(?P<step>\S+)")
_EXPECT_STRING = "expect string"
_OLD_FAILURE = re.compile(r"expected_fail_(?P<how>message|regexp)\s+(?P<message>.+)")
_STARTS = re.compile(r"(?P<labels>.+?)@st[ \t]")
_BUCKETS = re.compile(r"(?P<base>.+)_(?:bucket|count|sum)")


def parse_script(text: str) -> tuple[Command, ...]:
    """The commands of a script, in order."""
    lines = [line.strip() for line in text.split("\n")]
    lines = ["" if line.startswith("#") else line for line in lines]
    commands, start = list[Command](), 0
    while start < len(lines):
        if not lines[start]:
            start += 1
            continue
        end = start + 1
        # A command ends at the next empty line or comment; `clear` has one line.
        word = lines[start].split(maxsplit=1)[0].lower()
        if word != "clear":
            while end < len(lines) and lines[end]:
                end += 1
        commands.append(_command(word, lines[start:end], start + 1))
        start = end
    return tuple(commands)


def _command(word: str, lines: Sequence[str], first: int) -> Command:
    if word == "clear":
        return Clear()
    if word.startswith("load"):
        return _load(lines, first)
    if word.startswith("eval"):
        return _evaluation(lines, first)
    raise ScriptError(f"{lines[0]!r} is not a command: write load, clear or eval", first)


def _load(lines: Sequence[str], first: int) -> Load:
    head = _LOAD.fullmatch(lines[0])
    if head is None:
        raise ScriptError("write: load STEP, such as load 1m", first)
    step = _duration(head["step"], "the step", first)
    series: dict[tuple[tuple[str, str], ...], SeriesLine] = {}
    unsupported: list[Unsupported] = []
    started: Labels | None = None
    for number, line in enumerate(lines[1:], first + 1):
        if starts := _STARTS.match(line):
            started = _labels(starts["labels"], number)
            continue
        found = _series(line, number)
        times = tuple(at * step for at, value in enumerate(found.values) if value is not None)
        if found.labels == started:
            unsupported.append(Unsupported(found.labels, times, START_TIMESTAMPS))
        # Of two lines for the same series, the last one is used.
        series[tuple(sorted(found.labels.items()))] = found
        if found.histograms:
            of_histograms = tuple(at * step for at in found.histograms)
            unsupported.append(Unsupported(found.labels, of_histograms, NATIVE_HISTOGRAMS))
        if head["histograms"] and (base := _BUCKETS.fullmatch(found.labels.get(METRIC_NAME, ""))):
            rest = {label: value for label, value in found.labels.items() if label != "le"}
            unsupported.append(Unsupported({**rest, METRIC_NAME: base["base"]}, times, NATIVE_HISTOGRAMS))
    return Load(step, tuple(series.values()), tuple(unsupported))


def _evaluation(lines: Sequence[str], first: int) -> Evaluation:
    head = _INSTANT.fullmatch(lines[0]) or _RANGE.fullmatch(lines[0])
    if head is None:
        raise ScriptError("write: eval instant at TIME QUERY, or eval range from TIME to TIME step STEP QUERY", first)
    points: range | None = None
    if head.re is _INSTANT:
        times = QueryTimes.instant(_duration(head["at"], "the time", first))
    else:
        points = _points(head, first)
        times = QueryTimes(points.start, points.stop - 1, points.step)
    expectations = _Expectations(head["form"])
    for number, line in enumerate(lines[1:], first + 1):
        if found := _EXPECT_POINTS.fullmatch(line):
            if head.re is not _INSTANT:
                raise ScriptError("expect range vector belongs to eval instant", number)
            points = _points(found, number)
            times = QueryTimes.instant(points.stop - 1)
            continue
        if expectations.take(line, number):
            break
    is_instant = head.re is _INSTANT
    expected = expectations.finished(first)
    if is_instant and points is None and any(len(one.values) != 1 for one in expected.series):
        raise ScriptError("a series of an instant evaluation has one value, except with expect range vector", first)
    return Evaluation(first, head["query"], times, expected, points)


class _Expectations:
    """Collects the lines below `eval`."""

    def __init__(self, form: str | None) -> None:
        self._series: list[SeriesLine] = []
        self._scalar: float | None = None
        self._string: str | None = None
        self._is_ordered = form == "ordered"
        self._texts: dict[str, list[ExpectedMessage]] = {
            "fail": [],
            "warn": [],
            "info": [],
            "no_warn": [],
            "no_info": [],
        }
        self._old_failure: ExpectedMessage | None = ExpectedMessage() if form == "fail" else None
        if form in ("warn", "info"):
            self._texts[form].append(ExpectedMessage())

    def take(self, line: str, number: int) -> bool:
        """Parse a line. Returns whether the following lines are ignored."""
        if self._old_failure is not None and (old := _OLD_FAILURE.fullmatch(line)):
            self._old_failure = _text("regex" if old["how"] == "regexp" else "msg", old["message"], number)
            return True
        if line.startswith(_EXPECT_STRING):
            self._string = _string(line.removeprefix(_EXPECT_STRING).strip(), number)
        elif line.split(maxsplit=1)[0] == "expect":
            self._expect(line, number)
        else:
            try:
                self._scalar = parse_number(line)
            except ValueError:
                self._series.append(_series(line, number))
            else:
                return True
        return False

    def _expect(self, line: str, number: int) -> None:
        found = _EXPECT.fullmatch(line)
        if found is None:
            raise ScriptError(
                "write: expect fail, warn, info, no_warn, no_info or ordered, and msg:TEXT or regex:PATTERN after the "
                "first three; or expect string, or expect range vector",
                number,
            )
        if found["what"] == "ordered":
            self._is_ordered = True
        else:
            self._texts[found["what"]].append(_text(found["how"], found["message"], number))

    def finished(self, line: int) -> Expected:
        """The expected result."""
        failures = [*self._texts["fail"], *([self._old_failure] if self._old_failure is not None else [])]
        if len(failures) > 1:
            raise ScriptError("an evaluation may have only one expect fail", line)
        return Expected(
            tuple(self._series),
            self._scalar,
            self._string,
            failures[0] if failures else None,
            self._is_ordered,
            self._annotated("warn", line),
            self._annotated("info", line),
        )

    def _annotated(self, what: str, line: int) -> ExpectedAnnotations:
        texts, none = tuple(self._texts[what]), bool(self._texts[f"no_{what}"])
        if texts and none:
            raise ScriptError(f"expect {what} and expect no_{what} are mutually exclusive", line)
        return ExpectedAnnotations(texts, none)


def _text(how: str | None, message: str | None, number: int) -> ExpectedMessage:
    wanted = (message or "").strip()
    if how is None:
        return ExpectedMessage()
    if how == "msg":
        return ExpectedMessage(exact=wanted)
    try:
        return ExpectedMessage(pattern=re.compile(wanted))
    except re.error as error:
        raise ScriptError(f"{wanted!r} is not a regular expression: {error}", number) from error


def _string(text: str, number: int) -> str:
    try:
        token = Lexer(text).next()
    except ParseError as error:
        raise ScriptError(f"expect string: {error.fault}", number) from error
    if token.kind is not Kind.STRING or token.text != text:
        raise ScriptError('expect string takes a string in quotes: expect string "abc"', number)
    return string_value(token)


def _points(found: re.Match[str], number: int) -> range:
    start, end = _duration(found["start"], "the start", number), _duration(found["end"], "the end", number)
    step = _duration(found["step"], "the step", number)
    if end < start:
        raise ScriptError(f"the end ({found['end']}) is before the start ({found['start']})", number)
    if step <= 0:
        raise ScriptError("the step must be positive", number)
    return range(start, end + 1, step)


def _duration(text: str, what: str, number: int) -> int:
    if text == "0":
        return 0
    try:
        return round(duration_seconds(text) * 1000)
    except ValueError as error:
        raise ScriptError(f"{what}: {error}; write 0, 30s or 1h30m", number) from None


def _series(line: str, number: int) -> SeriesLine:
    try:
        return parse_series(line)
    except ValueError as error:
        raise ScriptError(str(error), number) from error


def _labels(text: str, number: int) -> Labels:
    try:
        return parse_labels(text)[0]
    except ValueError as error:
        raise ScriptError(str(error), number) from error
