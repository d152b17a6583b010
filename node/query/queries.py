"""The queries that the HTTP handlers make to a node, with their limits and errors."""

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

NARROW_THE_QUERY = "Narrow the selector or the time range, or raise query.timeout"
"""The remedy for a query that takes too long."""
NARROW_OR_RAISE_TIMEOUT = "Narrow the selector or the time range, or raise the timeout= of the request"
"""The remedy if the client has set the timeout."""


class QueryCancelled(Retryable):
    """The client no longer waits for the answer."""


class QueryTimedOut(Retryable):
    """The query's timeout has passed."""


class QueryTooLarge(Fatal):
    """The query exceeds a limit."""


class TooManySeries(QueryTooLarge):
    """The selector matches more series than `query.max_series`."""

    def __init__(self, found: int, limit: int, *, about: str = "") -> None:
        """`about` qualifies the number, for example "at least"."""
        super().__init__(
            f"the selector matches {about}{' ' if about else ''}{found:,} series, "
            f"and a query may read samples of {limit:,}",
            remedy="Narrow the selector or the time range, or raise query.max_series",
        )
        self.found = found


class TooManySamples(QueryTooLarge):
    """The series have more samples in the range than `query.max_samples`."""

    def __init__(self, found: int, limit: int, *, at_least: bool = False) -> None:
        super().__init__(
            f"the query reads {'at least ' if at_least else ''}{found:,} samples, and {limit:,} are allowed",
            remedy="Narrow the selector or the time range, or raise query.max_samples",
        )
        self.found = found


class PartialAnswer(Retryable):
    """The node has only a part of the answer now, and the query requires all of it."""


class QueryUnavailable(Retryable):
    """No shard can answer now."""


def timed_out(timeout_s: float) -> QueryTimedOut:
    """The error of a query that had a timeout of `timeout_s`."""
    return QueryTimedOut(
        f"the query took longer than {timeout_s:g} s",
        remedy=NARROW_THE_QUERY,
    )


class Cancellation:
    """Whether a request was cancelled, or its timeout has passed. Thread-safe."""

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock, self.timeout_s = clock, timeout_s
        self._deadline = clock.monotonic() + timeout_s
        # Not a threading.Event: nothing waits for it, and constructing one costs more than a lookup.
        self._is_cancelled = False

    def cancel(self) -> None:
        """Cancel the request."""
        self._is_cancelled = True

    @property
    def seconds_left(self) -> float:
        """The time left; 0 if cancelled."""
        return 0.0 if self._is_cancelled else max(0.0, self._deadline - self._clock.monotonic())

    def check(self) -> None:
        """Raises `QueryCancelled` or `QueryTimedOut`."""
        if self._is_cancelled:
            raise QueryCancelled("the query was cancelled by its client")
        if self._clock.monotonic() >= self._deadline:
            raise timed_out(self.timeout_s)


@dataclass(slots=True)
class QueryScope:
    """A query's timeout and memory. Not frozen: `frozen=True` doubles the construction cost, and each query has one."""

    timeout_s: float
    memory: MemoryLease
    deadline: float | None = None
    """By the event loop's clock. If it is None, the timeout begins with the first query."""

    def seconds_left(self, now: float) -> float:
        """The time left."""
        if self.deadline is None:
            self.deadline = now + self.timeout_s
            return self.timeout_s
        return max(0.0, self.deadline - now)


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """Limits of a PromQL query: series that a selector matches, and samples and cells in memory at once."""

    max_series: int
    max_samples: int


class NodeQueries(Protocol):
    """Queries to all shards of a node, for one event loop. A query is cancelled by cancelling its task.

    Each raises `QueryTooLarge`, `QueryTimedOut`, `QueryUnavailable` (no shard answers), `AnswerMemoryFull`,
    `AnswerTooLarge`, and the errors of `strandline.index.matchers` for a matcher that is refused. If some shards answer
    and others can't, the answer has a warning about these, and about partitions that the node does not serve.
    """

    async def series(self, request: SeriesRequest, scope: QueryScope) -> SeriesAnswer: ...

    async def label_names(self, request: LabelNamesRequest, scope: QueryScope) -> TermsAnswer: ...

    async def label_values(self, request: LabelValuesRequest, scope: QueryScope) -> TermsAnswer: ...

    async def samples(self, request: SamplesRequest, scope: QueryScope) -> SamplesAnswer: ...

    async def evaluate(self, fragment: AnyFragment, limits: EvaluationLimits, scope: QueryScope) -> FragmentResult:
        """The result of a fragment of a PromQL query. Raises `EvaluationError` as well."""
        ...

    async def count_series(
        self, selectors: tuple[Selector, ...], within: TimeRange | None, scope: QueryScope
    ) -> SeriesCount:
        """The number of distinct series that any of the selectors matches."""
        ...

    async def key_page(self, request: KeyPageRequest, scope: QueryScope) -> KeyPageAnswer: ...

    async def cardinality(self, request: CardinalityRequest, scope: QueryScope) -> CardinalityAnswer: ...

    async def buckets(self, request: BucketsRequest, scope: QueryScope) -> BucketsAnswer: ...

    def index_version(self) -> IndexVersion | None:
        """The version of the shards' lists of all label names and values; None if it is unknown, or if the lists must
        not be cached.
        """
        ...

    def unserved(self) -> tuple[str, ...]:
        """The warning about partitions that this node does not serve, which all answers have; empty if it
        serves all.
        """
        ...

    def answered_from_cache(self, request: LabelNamesRequest | LabelValuesRequest) -> None:
        """A query was answered with a cached list, without a request to shards."""
        ...
