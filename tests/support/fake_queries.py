"""A node's queries over series given in plain Python, for tests of the layers above them."""

import asyncio
import re
import threading
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.answers import (
    BucketsAnswer,
    CardinalityAnswer,
    FragmentResult,
    SamplesAnswer,
    SeriesAnswer,
    SeriesCount,
    TermsAnswer,
)
from strandline.node.query.index_version import IndexVersion
from strandline.node.query.queries import EvaluationLimits, QueryScope, QueryTooLarge, timed_out
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    Selector,
    SeriesRequest,
    ShardRequest,
)
from strandline.node.shard.bucket_report import BucketFigures
from strandline.promql.local import LocalEngine, split
from strandline.promql.plan.fragments import AnyFragment
from strandline.promql.values import Samples as SampleColumns
from strandline.time_range import TimeRange

Labels = Mapping[str, str]
Samples = Sequence[tuple[int, float]]


class FakeQueries:
    """`NodeQueries` over series: labels, and samples as (milliseconds, value) in ascending order of their times.
    `requests` has every request, `fragments` the evaluated fragments, and `timeouts` the timeout of each request in
    seconds. `warnings` are added to every answer. `failure` is raised instead of any answer. With `held`, a request
    waits until it is cancelled, and `given_up` is set then. An answer takes `size` bytes of memory. With a `version`,
    lists may be cached, and `cached_answers` has the requests that were answered from the cache. PromQL is evaluated
    over `shards` shards.
    """

    def __init__(
        self,
        series: Iterable[tuple[Labels, Samples]] = (),
        *,
        warnings: tuple[str, ...] = (),
        failure: Exception | None = None,
        buckets: tuple[BucketFigures, ...] = (),
        held: bool = False,
        size: int = 0,
        version: IndexVersion | None = None,
        shards: int = 1,
    ) -> None:
        self.stored = sorted(((dict(labels), list(samples)) for labels, samples in series), key=_order)
        self.warnings, self.failure, self.held = warnings, failure, held
        self.bucket_figures = buckets
        self.size, self.version = size, version
        self.estimated_labels: tuple[str, ...] = ()
        self.estimated_series = False
        self.unserved_partitions: tuple[str, ...] = ()
        self.requests: list[ShardRequest] = []
        self.fragments: list[AnyFragment] = []
        self.engine = LocalEngine(split(self.stored, shards))
        self.timeouts: list[float] = []
        self.cached_answers: list[ShardRequest] = []
        self.holding, self.given_up = threading.Event(), threading.Event()

    async def series(self, request: SeriesRequest, scope: QueryScope) -> SeriesAnswer:
        await self._begin(request, scope)
        found = [labels for labels, _ in self._matching(request.selectors, request.within)]
        return SeriesAnswer(_keys(found[: request.limit]), len(found) > request.limit, self.warnings)

    async def label_names(self, request: LabelNamesRequest, scope: QueryScope) -> TermsAnswer:
        await self._begin(request, scope)
        found = self._matching(request.selectors, request.within)
        names = [name for labels, _ in found for name in labels]
        return self._terms(names, request.limit, of_all=len(found) == len(self.stored))

    async def label_values(self, request: LabelValuesRequest, scope: QueryScope) -> TermsAnswer:
        await self._begin(request, scope)
        found = self._matching(request.selectors, request.within)
        values = [labels[request.label] for labels, _ in found if request.label in labels]
        return self._terms(values, request.limit, of_all=len(found) == len(self.stored))

    async def samples(self, request: SamplesRequest, scope: QueryScope) -> SamplesAnswer:
        await self._begin(request, scope)
        inside = [
            (labels, [(time, value) for time, value in samples if request.within.first <= time <= request.within.last])
            for labels, samples in self._matching((request.selector,), None)
        ]
        found = [(labels, samples) for labels, samples in inside if samples]
        flat = [sample for _, samples in found for sample in samples]
        if len(found) > request.max_series:
            raise QueryTooLarge(f"{len(found)} series are more than {request.max_series}")
        if len(flat) > request.max_samples:
            raise QueryTooLarge(f"{len(flat)} samples are more than {request.max_samples}")
        return SamplesAnswer(
            _keys([labels for labels, _ in found]),
            np.cumsum([0, *(len(samples) for _, samples in found)], dtype=np.int64),
            np.array([time for time, _ in flat], dtype=np.int64),
            np.array([value for _, value in flat], dtype=np.float64),
            self.warnings,
        )

    async def evaluate(self, fragment: AnyFragment, limits: EvaluationLimits, scope: QueryScope) -> FragmentResult:
        self.fragments.append(fragment)
        await self._began(scope)
        found = self.engine.selected(fragment)
        if len(found.keys) > limits.max_series:
            raise QueryTooLarge(f"{len(found.keys)} series are more than {limits.max_series}")
        if len(found.time) > limits.max_samples:
            raise QueryTooLarge(f"{len(found.time)} samples are more than {limits.max_samples}")
        value, annotations = self.engine.fetch(fragment)
        if not isinstance(value, SampleColumns):
            scope.memory.grow(value.values.nbytes)
        return FragmentResult(value, annotations, len(found.time), self.warnings)

    async def count_series(
        self, selectors: tuple[Selector, ...], within: TimeRange | None, _scope: QueryScope
    ) -> SeriesCount:
        return SeriesCount(len(self._matching(selectors, within)))

    async def cardinality(self, request: CardinalityRequest, scope: QueryScope) -> CardinalityAnswer:
        await self._begin(request, scope)
        found = [labels for labels, _ in self._matching(request.selectors, request.within)]
        pairs: dict[tuple[str, str], int] = {}
        for labels in found:
            for pair in labels.items():
                pairs[pair] = pairs.get(pair, 0) + 1
        ranked = [
            ValueCardinality(*pair, series)
            for pair, series in sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))
        ]
        names = sorted({name for name, _ in pairs})
        return CardinalityAnswer(
            len(found),
            tuple(_label_figures(name, pairs) for name in names),
            tuple(ranked[: request.limit]),
            tuple([row for row in ranked if row.label == "__name__"][: request.limit]),
            tuple([row for row in ranked if row.label == request.label][: request.limit]),
            estimated_labels=self.estimated_labels,
            estimated_series=self.estimated_series,
            warnings=self.warnings,
        )

    async def buckets(self, request: BucketsRequest, scope: QueryScope) -> BucketsAnswer:
        await self._begin(request, scope)
        newest = sorted({figures.bucket for figures in self.bucket_figures})[-request.limit :] if request.limit else []
        return BucketsAnswer(
            tuple(figures for figures in self.bucket_figures if figures.bucket in newest), self.warnings
        )

    def index_version(self) -> IndexVersion | None:
        return self.version

    def unserved(self) -> tuple[str, ...]:
        return self.unserved_partitions

    def answered_from_cache(self, request: LabelNamesRequest | LabelValuesRequest) -> None:
        self.cached_answers.append(request)

    async def _begin(self, request: ShardRequest, scope: QueryScope) -> None:
        self.requests.append(request)
        await self._began(scope)

    async def _began(self, scope: QueryScope) -> None:
        self.timeouts.append(scope.timeout_s)
        if self.held:
            await self._hold(scope)
        if self.failure is not None:
            raise self.failure
        scope.memory.grow(self.size)

    async def _hold(self, scope: QueryScope) -> None:
        self.holding.set()
        try:
            async with asyncio.timeout(scope.timeout_s):
                await asyncio.Event().wait()
        except TimeoutError:
            raise timed_out(scope.timeout_s) from None
        finally:
            self.given_up.set()

    def _matching(
        self, selectors: tuple[Selector, ...], within: TimeRange | None
    ) -> list[tuple[dict[str, str], list[tuple[int, float]]]]:
        return [
            (labels, samples)
            for labels, samples in self.stored
            if not selectors or any(all(_matches(labels, matcher) for matcher in selector) for selector in selectors)
            if within is None or not samples or (samples[0][0] <= within.last and samples[-1][0] >= within.first)
        ]

    def _terms(self, found: list[str], limit: int, *, of_all: bool) -> TermsAnswer:
        terms = sorted(set(found))
        answered_from_cache = [term.encode() for term in terms[:limit]]
        return TermsAnswer(
            np.cumsum([0, *map(len, answered_from_cache)], dtype=np.int64),
            np.frombuffer(b"".join(answered_from_cache), dtype=np.uint8),
            np.array([found.count(term) for term in terms[:limit]], dtype=np.int64),
            len(terms) > limit,
            self.warnings,
            of_all=of_all,
        )


def _order(one: tuple[Labels, Samples]) -> list[tuple[str, str]]:
    return sorted(one[0].items())


def _keys(found: list[dict[str, str]]) -> KeyBytes:
    keys = [encode_part_key(labels) for labels in found]
    return KeyBytes(np.cumsum([0, *map(len, keys)], dtype=np.int64), np.frombuffer(b"".join(keys), dtype=np.uint8))


def _matches(labels: Labels, matcher: Matcher) -> bool:
    value = labels.get(matcher.label, "")
    match matcher.op:
        case MatchOp.EQUAL:
            return value == matcher.value
        case MatchOp.NOT_EQUAL:
            return value != matcher.value
        case MatchOp.MATCH:
            return re.fullmatch(matcher.value, value, re.DOTALL) is not None
        case MatchOp.NOT_MATCH:
            return re.fullmatch(matcher.value, value, re.DOTALL) is None


def _label_figures(name: str, pairs: Mapping[tuple[str, str], int]) -> LabelCardinality:
    own = {value: series for (label, value), series in pairs.items() if label == name}
    return LabelCardinality(name, len(own), sum(own.values()), sum(len(value.encode()) for value in own))
