"""A `NodeQueries` that counts the requests to the shards and passes them on to another `NodeQueries`."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from strandline.index.matchers import InvalidMatcher
from strandline.index.pylucene.failures import RegexTooCostly
from strandline.node.metrics.front_figures import ANSWERED, FrontFigures
from strandline.node.query.answer_memory import AnswerMemoryFull, AnswerTooLarge
from strandline.node.query.answers import (
    Answer,
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
from strandline.node.query.queries import (
    EvaluationLimits,
    NodeQueries,
    QueryScope,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
)
from strandline.node.query.shard_requests import (
    LABEL_NAMES,
    LABEL_VALUES,
    SERIES,
    BucketsRequest,
    CardinalityRequest,
    KeyPageRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    Selector,
    SeriesRequest,
)
from strandline.promql.errors import EvaluationError
from strandline.promql.plan.fragments import AnyFragment
from strandline.time_range import TimeRange

Given = TypeVar("Given", bound=Answer | FragmentResult)

KEPT, WARNED, FAILED = "kept", "warned", "failed"
_OUTCOMES: tuple[tuple[type[BaseException], str], ...] = (
    (QueryTooLarge, "too-large"),
    (AnswerTooLarge, "too-large"),
    (AnswerMemoryFull, "no-memory"),
    (QueryTimedOut, "timed-out"),
    (asyncio.CancelledError, "cancelled"),
    (QueryUnavailable, "unavailable"),
    (InvalidMatcher, "refused"),
    (RegexTooCostly, "refused"),
    (EvaluationError, "refused"),
)


class CountedQueries:
    """Passes every request on, and counts its outcome. Used by one event loop."""

    def __init__(self, queries: NodeQueries, figures: FrontFigures) -> None:
        self._queries, self._figures = queries, figures

    async def series(self, request: SeriesRequest, scope: QueryScope) -> SeriesAnswer:
        return await self._counted(SERIES, self._queries.series(request, scope))

    async def label_names(self, request: LabelNamesRequest, scope: QueryScope) -> TermsAnswer:
        return await self._counted(LABEL_NAMES, self._queries.label_names(request, scope))

    async def label_values(self, request: LabelValuesRequest, scope: QueryScope) -> TermsAnswer:
        return await self._counted(LABEL_VALUES, self._queries.label_values(request, scope))

    async def samples(self, request: SamplesRequest, scope: QueryScope) -> SamplesAnswer:
        return await self._counted("samples", self._queries.samples(request, scope))

    async def evaluate(self, fragment: AnyFragment, limits: EvaluationLimits, scope: QueryScope) -> FragmentResult:
        return await self._counted("evaluate", self._queries.evaluate(fragment, limits, scope))

    async def count_series(
        self, selectors: tuple[Selector, ...], within: TimeRange | None, scope: QueryScope
    ) -> SeriesCount:
        """Not counted: it is part of another request."""
        return await self._queries.count_series(selectors, within, scope)

    async def key_page(self, request: KeyPageRequest, scope: QueryScope) -> KeyPageAnswer:
        return await self._counted("key-page", self._queries.key_page(request, scope))

    async def cardinality(self, request: CardinalityRequest, scope: QueryScope) -> CardinalityAnswer:
        return await self._counted("cardinality", self._queries.cardinality(request, scope))

    async def buckets(self, request: BucketsRequest, scope: QueryScope) -> BucketsAnswer:
        return await self._counted("buckets", self._queries.buckets(request, scope))

    def index_version(self) -> IndexVersion | None:
        return self._queries.index_version()

    def unserved(self) -> tuple[str, ...]:
        return self._queries.unserved()

    def answered_from_cache(self, request: LabelNamesRequest | LabelValuesRequest) -> None:
        self._queries.answered_from_cache(request)
        self._figures.count_query(LABEL_NAMES if isinstance(request, LabelNamesRequest) else LABEL_VALUES, KEPT)

    async def _counted(self, kind: str, query: Coroutine[object, object, Given]) -> Given:
        try:
            answer = await query
        except BaseException as error:
            self._figures.count_query(
                kind, next((outcome for error_type, outcome in _OUTCOMES if isinstance(error, error_type)), FAILED)
            )
            raise
        series = len(answer.keys) if isinstance(answer, SeriesAnswer | SamplesAnswer | KeyPageAnswer) else 0
        samples = len(answer.time) if isinstance(answer, SamplesAnswer) else 0
        if isinstance(answer, FragmentResult):
            series, samples = len(answer.value.keys), answer.samples
        # A warning about partitions of other nodes is normal.
        is_warned = answer.warnings and answer.warnings != self._queries.unserved()
        self._figures.count_query(kind, WARNED if is_warned else ANSWERED, series=series, samples=samples)
        return answer
