"""What the HTTP handlers may ask of a node, and how a question is given up."""

from typing import Protocol

from strandline.clock import Clock
from strandline.errors import Fatal, Retryable
from strandline.node.query.answers import (
    BucketsAnswer,
    CardinalityAnswer,
    SamplesAnswer,
    SeriesAnswer,
    TermsAnswer,
)
from strandline.node.query.asks import (
    BucketsAsk,
    CardinalityAsk,
    LabelNamesAsk,
    LabelValuesAsk,
    SamplesAsk,
    SeriesAsk,
)


class QueryCancelled(Retryable):
    """Nobody waits for the answer any more."""


class QueryTimedOut(Retryable):
    """The answer would come too late."""


class QueryTooLarge(Fatal):
    """The question would cost more than a limit allows."""


class QueryUnavailable(Retryable):
    """No shard can answer now."""


class Cancellation:
    """Whether an answer is still wanted: nobody has given it up, and its time is not over. Any thread may ask."""

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock, self._timeout_s = clock, timeout_s
        self._until = clock.monotonic() + timeout_s
        # Nobody waits for it, so that it is no event: one is made for each question, and costs more than a look-up.
        self._is_cancelled = False

    def cancel(self) -> None:
        """Give it up."""
        self._is_cancelled = True

    @property
    def seconds_left(self) -> float:
        """How long it may still take; 0 if it was given up."""
        return 0.0 if self._is_cancelled else max(0.0, self._until - self._clock.monotonic())

    def check(self) -> None:
        """Raises `QueryCancelled` or `QueryTimedOut`."""
        if self._is_cancelled:
            raise QueryCancelled("the query was given up by its client")
        if self._clock.monotonic() >= self._until:
            raise QueryTimedOut(
                f"the query took longer than {self._timeout_s:g} s",
                remedy="Ask for less: a narrower selector or time range; or raise query.timeout",
            )


class NodeQueries(Protocol):
    """Questions to all shards of a node at once. To be called from worker threads: each call blocks.

    Each raises `QueryTooLarge`, `QueryCancelled`, `QueryTimedOut`, `QueryUnavailable` (no shard answers), and the
    errors of `strandline.index.matchers` for an expression that is refused. A shard that can't answer while others can
    is a warning in the answer.
    """

    def series(self, ask: SeriesAsk, cancellation: Cancellation) -> SeriesAnswer: ...

    def label_names(self, ask: LabelNamesAsk, cancellation: Cancellation) -> TermsAnswer: ...

    def label_values(self, ask: LabelValuesAsk, cancellation: Cancellation) -> TermsAnswer: ...

    def samples(self, ask: SamplesAsk, cancellation: Cancellation) -> SamplesAnswer: ...

    def cardinality(self, ask: CardinalityAsk, cancellation: Cancellation) -> CardinalityAnswer: ...

    def buckets(self, ask: BucketsAsk, cancellation: Cancellation) -> BucketsAnswer: ...
