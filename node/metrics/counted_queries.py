"""Questions to the shards, counted: a `NodeQueries` around another one."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from strandline.index.matchers import InvalidMatcher
from strandline.index.pylucene.failures import RegexTooCostly
from strandline.node.metrics.front_figures import ANSWERED, FrontFigures
from strandline.node.query.answers import (
    Answer,
    BucketsAnswer,
    CardinalityAnswer,
    SamplesAnswer,
    SeriesAnswer,
    TermsAnswer,
)
from strandline.node.query.asks import (
    LABEL_NAMES,
    LABEL_VALUES,
    SERIES,
    BucketsAsk,
    CardinalityAsk,
    LabelNamesAsk,
    LabelValuesAsk,
    SamplesAsk,
    SeriesAsk,
)
from strandline.node.query.edition import Edition
from strandline.node.query.queries import (
    Cancellation,
    NodeQueries,
    QueryCancelled,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
)
from strandline.node.query.quick import Coming, LookupAnswer, Question, QuickQueries

Given = TypeVar("Given", bound=Answer)

KEPT, WARNED, FAILED = "kept", "warned", "failed"
_OUTCOMES: tuple[tuple[type[BaseException], str], ...] = (
    (QueryTooLarge, "too-large"),
    (QueryTimedOut, "timed-out"),
    (QueryCancelled, "cancelled"),
    (QueryUnavailable, "unavailable"),
    (InvalidMatcher, "refused"),
    (RegexTooCostly, "refused"),
)


class Queries(NodeQueries, QuickQueries, Protocol):
    """What is counted here."""


class CountedQueries:
    """Passes every question on, and counts what came of it. Any thread may ask."""

    def __init__(self, queries: Queries, figures: FrontFigures) -> None:
        self._queries, self._figures = queries, figures

    def series(self, ask: SeriesAsk, cancellation: Cancellation) -> SeriesAnswer:
        return self._counted(SERIES, lambda: self._queries.series(ask, cancellation))

    def label_names(self, ask: LabelNamesAsk, cancellation: Cancellation) -> TermsAnswer:
        return self._counted(LABEL_NAMES, lambda: self._queries.label_names(ask, cancellation))

    def label_values(self, ask: LabelValuesAsk, cancellation: Cancellation) -> TermsAnswer:
        return self._counted(LABEL_VALUES, lambda: self._queries.label_values(ask, cancellation))

    def samples(self, ask: SamplesAsk, cancellation: Cancellation) -> SamplesAnswer:
        return self._counted("samples", lambda: self._queries.samples(ask, cancellation))

    def cardinality(self, ask: CardinalityAsk, cancellation: Cancellation) -> CardinalityAnswer:
        return self._counted("cardinality", lambda: self._queries.cardinality(ask, cancellation))

    def buckets(self, ask: BucketsAsk, cancellation: Cancellation) -> BucketsAnswer:
        return self._counted("buckets", lambda: self._queries.buckets(ask, cancellation))

    def edition(self) -> Edition | None:
        return self._queries.edition()

    def kept(self, question: Question) -> None:
        self._queries.kept(question)
        self._figures.asked(question.kind, KEPT)

    def begin_at_once(self, question: Question, cancellation: Cancellation, came: Callable[[], None]) -> Coming | None:
        return self._queries.begin_at_once(question, cancellation, came)

    def fetch(self, question: Question, coming: Coming) -> LookupAnswer:
        return self._counted(question.kind, coming.answer)

    def _counted(self, ask: str, question: Callable[[], Given]) -> Given:
        try:
            answer = question()
        except BaseException as error:
            self._figures.asked(ask, next((told for kind, told in _OUTCOMES if isinstance(error, kind)), FAILED))
            raise
        series = len(answer.keys) if isinstance(answer, SeriesAnswer | SamplesAnswer) else 0
        samples = len(answer.time) if isinstance(answer, SamplesAnswer) else 0
        self._figures.asked(ask, WARNED if answer.warnings else ANSWERED, series=series, samples=samples)
        return answer
