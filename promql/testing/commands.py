"""The commands of a test script. Times are milliseconds since the epoch, at which the series start."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.promql.plan.query_times import QueryTimes

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SeriesLine:
    """A series and its values, one for each step. A value is None if there is no sample, or a native histogram, whose
    positions are in `histograms`.
    """

    labels: Labels
    values: tuple[float | None, ...]
    histograms: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Samples of a series that Strandline can't represent because it lacks a feature."""

    labels: Labels
    times: tuple[int, ...]
    feature: str


@dataclass(frozen=True, slots=True)
class Load:
    """Adds series. Their samples start at 0 and are `step` apart."""

    step: int
    series: tuple[SeriesLine, ...]
    unsupported: tuple[Unsupported, ...] = ()


@dataclass(frozen=True, slots=True)
class Clear:
    """Removes all series."""


@dataclass(frozen=True, slots=True)
class ExpectedMessage:
    """An expected message: exactly `exact`, or a text that contains a match of `pattern`. Any text if both are None."""

    exact: str | None = None
    pattern: re.Pattern[str] | None = None

    @property
    def is_specific(self) -> bool:
        """Whether it restricts the message."""
        return self.exact is not None or self.pattern is not None

    def matches(self, message: str) -> bool:
        """Whether a message is as expected."""
        if self.exact is not None:
            return self.exact == message
        return self.pattern is None or self.pattern.search(message) is not None

    def __str__(self) -> str:
        if self.exact is not None:
            return repr(self.exact)
        return "any message" if self.pattern is None else f"a match of {self.pattern.pattern!r}"


@dataclass(frozen=True, slots=True)
class ExpectedAnnotations:
    """The expected annotations of one level: each of `texts` has to match an annotation, and each annotation has to
    match one of `texts`. With `none`, there must be no annotations. Without both, any annotations are accepted.
    """

    texts: tuple[ExpectedMessage, ...] = ()
    none: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected result of an evaluation. `failure` is None unless the evaluation has to fail."""

    series: tuple[SeriesLine, ...] = ()
    scalar: float | None = None
    string: str | None = None
    failure: ExpectedMessage | None = None
    is_ordered: bool = False
    warnings: ExpectedAnnotations = ExpectedAnnotations()
    infos: ExpectedAnnotations = ExpectedAnnotations()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A query and its expected result. `points` are the times of the expected values, if the query is a range query or
    returns a range vector.
    """

    line: int
    query: str
    times: QueryTimes
    expected: Expected
    points: range | None = None


Command = Load | Clear | Evaluation
