"""Runs the commands of a script and reports for each evaluation whether it passed.

As in Prometheus, an instant evaluation is also checked as the middle step of a range query, and at other times with
every selector pinned by `@`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from strandline.promql.engine import prepare
from strandline.promql.errors import EvaluationError, ParseError
from strandline.promql.evaluation.results import Result
from strandline.promql.expressions import Expression
from strandline.promql.local import LocalEngine, matched_by, split
from strandline.promql.parser import parse
from strandline.promql.plan.fragments import AnyFragment
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.printing import print_expression
from strandline.promql.testing.commands import Clear, Command, Evaluation, Load, Unsupported
from strandline.promql.testing.comparison import (
    annotation_difference,
    difference,
    series_of,
    vector_difference,
)
from strandline.promql.testing.pinning import pinned
from strandline.promql.testing.script_parser import NATIVE_HISTOGRAMS
from strandline.promql.value_types import ValueType

SHARDS = (1, 2, 5)
"""The numbers of shards with which each evaluation runs."""
FEATURE_FLAG = "experimental: Prometheus needs a feature flag for it"

_MINUTE_MS = 60_000
# The values of these functions differ between instant and range queries.
_OF_QUERY = re.compile(r"(start|end|range|step)\(\)")
_EXPERIMENTAL = re.compile(r"\bexperimental\b|^function .* is not enabled$")


class Outcome(StrEnum):
    """The outcome of an evaluation."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of an evaluation, with its line and query. `reason` is what differs, or why it was skipped; `variant`
    is how the query was evaluated when it failed.
    """

    line: int
    query: str
    outcome: Outcome
    reason: str = ""
    variant: str = ""


def run(commands: Iterable[Command], shards: Sequence[int] = SHARDS) -> Iterator[Finding]:
    """The finding of each evaluation, in order."""
    data = _Data(shards)
    for command in commands:
        match command:
            case Clear():
                data = _Data(shards)
            case Load():
                data.load(command)
            case Evaluation():
                yield _finding(command, data)


class _Data:
    """The loaded series."""

    def __init__(self, shards: Sequence[int]) -> None:
        self._shards = shards
        self._series: dict[tuple[tuple[str, str], ...], dict[int, float]] = {}
        self._unsupported: list[Unsupported] = []
        self._engines: list[tuple[int, LocalEngine]] = []

    def load(self, command: Load) -> None:
        """Add series."""
        for line in command.series:
            samples = self._series.setdefault(tuple(sorted(line.labels.items())), {})
            samples.update((at * command.step, value) for at, value in enumerate(line.values) if value is not None)
        self._unsupported += command.unsupported
        self._engines = []

    def engines(self) -> list[tuple[int, LocalEngine]]:
        """An engine for each number of shards."""
        if not self._engines:
            series = [(dict(key), sorted(samples.items())) for key, samples in self._series.items()]
            self._engines = [(count, LocalEngine(split(series, count))) for count in self._shards]
        return self._engines

    def unsupported(self, runs: Iterable["_Run"]) -> str:
        """The missing feature that a sample needs which one of the runs reads; empty if there is none."""
        if not self._unsupported:
            return ""
        for fragment in {fragment for run_ in runs for fragment in run_.fragments()}:
            is_wanted = matched_by(fragment.matchers)
            for one in self._unsupported:
                if is_wanted(one.labels) and any(fragment.first <= time <= fragment.last for time in one.times):
                    return one.feature
        return ""


@dataclass(frozen=True, slots=True)
class _Run:
    """One way to run an evaluation."""

    query: str
    times: QueryTimes
    variant: str

    @property
    def times_around(self) -> QueryTimes:
        """The times of a range query whose middle step is the time of the instant query."""
        return QueryTimes(self.times.start - _MINUTE_MS, self.times.start + _MINUTE_MS, _MINUTE_MS)

    def fragments(self) -> Iterator[AnyFragment]:
        """The fragments that the run reads."""
        for times in (self.times, self.times_around) if self.times.is_instant else (self.times,):
            # Errors in the query are reported when it is evaluated.
            with suppress(ParseError, EvaluationError):
                yield from prepare(self.query, times).fragments


def _finding(evaluation: Evaluation, data: _Data) -> Finding:
    line, query = evaluation.line, evaluation.query
    try:
        expression = parse(query)
    except ParseError as error:
        failure = evaluation.expected.failure
        is_wanted = failure is not None and failure.matches(error.message)
        if _EXPERIMENTAL.search(error.fault) and not (is_wanted and failure is not None and failure.is_specific):
            return Finding(line, query, Outcome.SKIPPED, FEATURE_FLAG)
        return Finding(line, query, *((Outcome.PASSED,) if is_wanted else (Outcome.FAILED, error.message)))
    if reason := data.unsupported(_runs(evaluation, expression)):
        return Finding(line, query, Outcome.SKIPPED, reason)
    if any(one.histograms for one in evaluation.expected.series):
        return Finding(line, query, Outcome.SKIPPED, NATIVE_HISTOGRAMS)
    for count, engine in data.engines():
        for run_ in _runs(evaluation, expression):
            why, variant = _checked(evaluation, run_, engine)
            if why:
                shards = f"{count} shard{'s' if count > 1 else ''}"
                shown = ", ".join(one for one in (shards, run_.variant, variant) if one)
                return Finding(line, query, Outcome.FAILED, why, shown)
    return Finding(line, query, Outcome.PASSED)


def _runs(evaluation: Evaluation, expression: Expression) -> Iterator[_Run]:
    yield _Run(evaluation.query, evaluation.times, "")
    if not evaluation.times.is_instant:
        return
    time = evaluation.times.start
    at_time = pinned(expression, time)
    if at_time is None:
        return
    query = print_expression(at_time)
    for other in (-10 * time, 0, time // 5, time, 10 * time) if time else (-1000, 0, 1000):
        yield _Run(query, QueryTimes.instant(other), f"as {query} at {other / 1000:g}s")


def _checked(evaluation: Evaluation, run_: _Run, engine: LocalEngine) -> tuple[str, str]:
    """The difference from the expected result, empty if there is none, and the variant of the evaluation."""
    expected = evaluation.expected
    try:
        result = engine.query(run_.query, run_.times)
    except (ParseError, EvaluationError) as error:
        if expected.failure is None:
            return error.message, ""
        wanted = expected.failure.matches(error.message)
        return "" if wanted else f"expected to fail with {expected.failure}, got: {error.message}", ""
    if expected.failure is not None:
        return f"expected to fail with {expected.failure}, but the query succeeded", ""
    annotations = result.annotations
    why = (
        annotation_difference(expected.warnings, annotations.warnings(run_.query), "warning")
        or annotation_difference(expected.infos, annotations.infos(run_.query), "info")
        or difference(evaluation, result)
    )
    is_of_ranges = evaluation.points is not None or expected.string is not None
    if why or is_of_ranges or _OF_QUERY.search(run_.query):
        return why, ""
    return _checked_in_range(evaluation, run_, engine, result), "in the middle of a range query"


def _checked_in_range(evaluation: Evaluation, run_: _Run, engine: LocalEngine, instant: Result) -> str:
    time = run_.times.start
    try:
        result = engine.query(run_.query, run_.times_around)
    except (ParseError, EvaluationError) as error:
        return error.message
    if evaluation.expected.is_ordered:
        return ""
    at_time = [(key, [point for point in points if point[0] == time]) for key, points in series_of(result)]
    found = [(key, points) for key, points in at_time if points]
    if instant.kind is ValueType.SCALAR:
        return difference(evaluation, Result(ValueType.SCALAR, time, number=found[0][1][0][1]))
    return vector_difference(evaluation.expected, found)
