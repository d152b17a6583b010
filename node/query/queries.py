"""What the HTTP handlers may ask of a node, and how long and how large an answer may be."""

from dataclasses import dataclass
from typing import Protocol

from strandline.clock import Clock
from strandline.errors import Fatal, Retryable
from strandline.node.query.answer_memory import MemoryLease
from strandline.node.query.answers import (
    BucketsAnswer,
    CardinalityAnswer,
    FragmentResult,
    KeyPageAnswer,
    SamplesAnswer,
    SeriesAnswer,
    SeriesCount,
    TermsAnswer,
)
from strandline.node.query.index_version import IndexVersion
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    KeyPageRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    Selector,
    SeriesRequest,
)
from strandline.promql.plan.fragments import AnyFragment
from strandline.time_range import TimeRange

NARROW_THE_QUERY = "Ask for less: a narrower selector or time range; or raise query.timeout"
"""What to do about a query that takes too long."""
NARROW_OR_RAISE_TIMEOUT = "Ask for less: a narrower selector or time range; or raise the timeout= of the request"
"""The same, if it was the client who gave it little time."""


class QueryCancelled(Retryable):
    """The client no longer waits for the answer."""


class QueryTimedOut(Retryable):
    """The answer would come too late."""


class QueryTooLarge(Fatal):
    """The query would cost more than a limit allows."""


class TooManySeries(QueryTooLarge):
    """The selector matches more series than a query may read."""

    def __init__(self, found: int, most: int, *, about: str = "") -> None:
        """`about` stands before the number: "at least", say."""
        super().__init__(
            f"the selector matches {about}{' ' if about else ''}{found:,} series, "
            f"and a query may read samples of {most:,}",
            remedy="Narrow the selector or the time range, or raise query.max_series",
        )
        self.found = found


class TooManySamples(QueryTooLarge):
    """The series have more samples in the range than a query may read."""

    def __init__(self, found: int, most: int, *, at_least: bool = False) -> None:
        super().__init__(
            f"the query reads {'at least ' if at_least else ''}{found:,} samples, and {most:,} are allowed",
            remedy="Narrow the selector or the time range, or raise query.max_samples",
        )
        self.found = found


class PartialAnswer(Retryable):
    """The node has only a part of the answer now, and a part would not do."""


class QueryUnavailable(Retryable):
    """No shard can answer now."""


def timed_out(timeout_s: float) -> QueryTimedOut:
    """A query had so many seconds."""
    return QueryTimedOut(
        f"the query took longer than {timeout_s:g} s",
        remedy=NARROW_THE_QUERY,
    )


class Cancellation:
    """Whether an answer is still wanted in a shard: it was not cancelled, and its time is not over. Any thread may
    ask.
    """

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock, self.timeout_s = clock, timeout_s
        self._until = clock.monotonic() + timeout_s
        # Not an event: nothing waits for it, and to make one costs more than a look-up.
        self._is_cancelled = False

    def cancel(self) -> None:
        """The answer is not wanted."""
        self._is_cancelled = True

    @property
    def seconds_left(self) -> float:
        """How long it may still take; 0 if it was cancelled."""
        return 0.0 if self._is_cancelled else max(0.0, self._until - self._clock.monotonic())

    def check(self) -> None:
        """Raises `QueryCancelled` or `QueryTimedOut`."""
        if self._is_cancelled:
            raise QueryCancelled("the query was cancelled by its client")
        if self._clock.monotonic() >= self._until:
            raise timed_out(self.timeout_s)


@dataclass(slots=True)
class QueryScope:
    """How long a query may take, and what holds the memory of its answer. Not frozen: one is made for each query."""

    timeout_s: float
    memory: MemoryLease
    until: float | None = None
    """When the time is over, by the event loop's clock; if it is None, it begins with the first query."""

    def seconds_left(self, now: float) -> float:
        """How long the answer may still take."""
        if self.until is None:
            self.until = now + self.timeout_s
            return self.timeout_s
        return max(0.0, self.until - now)


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """How large a PromQL query may be: series that a selector matches, and samples and cells in memory at once."""

    max_series: int
    max_samples: int


class NodeQueries(Protocol):
    """Queries to all shards of a node at once, from an event loop. A query is given up by cancelling its task.

    Each raises `QueryTooLarge`, `QueryTimedOut`, `QueryUnavailable` (no shard answers), `AnswerMemoryFull`,
    `AnswerTooLarge`, and the errors of `strandline.index.matchers` for an expression that is refused. A shard that
    can't answer while others can is a warning in the answer, and so are partitions that the node does not serve.
    """

    async def series(self, request: SeriesRequest, scope: QueryScope) -> SeriesAnswer: ...

    async def label_names(self, request: LabelNamesRequest, scope: QueryScope) -> TermsAnswer: ...

    async def label_values(self, request: LabelValuesRequest, scope: QueryScope) -> TermsAnswer: ...

    async def samples(self, request: SamplesRequest, scope: QueryScope) -> SamplesAnswer: ...

    async def evaluate(self, fragment: AnyFragment, limits: EvaluationLimits, scope: QueryScope) -> FragmentResult:
        """What a fragment of a PromQL query gives. Raises `EvaluationError` as well."""
        ...

    async def count_series(
        self, selectors: tuple[Selector, ...], within: TimeRange | None, scope: QueryScope
    ) -> SeriesCount:
        """How many series any of the selectors matches, those in several shards once."""
        ...

    async def key_page(self, request: KeyPageRequest, scope: QueryScope) -> KeyPageAnswer: ...

    async def cardinality(self, request: CardinalityRequest, scope: QueryScope) -> CardinalityAnswer: ...

    async def buckets(self, request: BucketsRequest, scope: QueryScope) -> BucketsAnswer: ...

    def index_version(self) -> IndexVersion | None:
        """The version of the lists of all label names and values that the shards would give now; None if it is not
        known, or such lists should not be kept.
        """
        ...

    def unserved(self) -> tuple[str, ...]:
        """The warning that all answers carry because other nodes, or none, serve some partitions; empty if this node
        serves all.
        """
        ...

    def answered_from_cache(self, request: LabelNamesRequest | LabelValuesRequest) -> None:
        """A query was answered with a list that was kept, without asking a shard."""
        ...
