"""The commands of a test script. Times are milliseconds since the epoch, at which the series of a script begin."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.promql.plan.query_times import QueryTimes

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SeriesLine:
    """A series and its values, one for each step; None where there is no sample, or a native histogram, whose places
    are `histograms`.
    """

    labels: Labels
    values: tuple[float | None, ...]
    histograms: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Samples of a series that Strandline does not have as they are meant, for want of a feature."""

    labels: Labels
    times: tuple[int, ...]
    feature: str


@dataclass(frozen=True, slots=True)
class Load:
    """Adds series, whose samples are `step` apart from 0 on."""

    step: int
    series: tuple[SeriesLine, ...]
    unsupported: tuple[Unsupported, ...] = ()


@dataclass(frozen=True, slots=True)
class Clear:
    """Removes all series."""


@dataclass(frozen=True, slots=True)
class ExpectedMessage:
    """What a message has to be: exactly `exact`, or anything in which `pattern` is found. Anything if both are None."""

    exact: str | None = None
    pattern: re.Pattern[str] | None = None

    @property
    def is_specific(self) -> bool:
        """Whether there are messages that do not match."""
        return self.exact is not None or self.pattern is not None

    def matches(self, message: str) -> bool:
        """Whether a message is such a one."""
        if self.exact is not None:
            return self.exact == message
        return self.pattern is None or self.pattern.search(message) is not None

    def __str__(self) -> str:
        if self.exact is not None:
            return repr(self.exact)
        return "any message" if self.pattern is None else f"a match of {self.pattern.pattern!r}"


@dataclass(frozen=True, slots=True)
class ExpectedAnnotations:
    """The annotations of one level that are expected: each of `texts` has to match one, and each one of `texts`. With
    `none` there may not be any. Without both there may be any.
    """

    texts: tuple[ExpectedMessage, ...] = ()
    none: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What an evaluation has to give. `failure` is None unless it has to fail."""

    series: tuple[SeriesLine, ...] = ()
    scalar: float | None = None
    string: str | None = None
    failure: ExpectedMessage | None = None
    is_ordered: bool = False
    warnings: ExpectedAnnotations = ExpectedAnnotations()
    infos: ExpectedAnnotations = ExpectedAnnotations()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A query, and what it has to give. `points` are the times of the expected values if the query is a range query, or
    an instant one that gives a range vector.
    """

    line: int
    query: str
    times: QueryTimes
    expected: Expected
    points: range | None = None


Command = Load | Clear | Evaluation
