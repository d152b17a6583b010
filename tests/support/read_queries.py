"""A node's answers to remote reads, from a few series in memory."""

import re
from collections.abc import Awaitable, Callable, Mapping

from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.answers import SamplesAnswer, SeriesAnswer, SeriesCount
from strandline.node.query.queries import QueryScope, QueryTooLarge
from strandline.node.query.shard_requests import SamplesRequest, Selector, SeriesRequest
from strandline.time_range import TimeRange
from support.remote_read import Labels, Samples, answer_of


class ReadQueries:
    """Answers by going through all series. `requests` has the requests. `before` is awaited with the scope of each."""

    def __init__(self, series: Mapping[Labels, Samples], warnings: tuple[str, ...] = ()) -> None:
        self.series_held, self.warnings = dict(sorted(series.items())), warnings
        self.unserved_partitions: tuple[str, ...] = ()
        self.requests: list[SamplesRequest | SeriesRequest] = []
        self.before: Callable[[QueryScope], Awaitable[None]] = _nothing

    def unserved(self) -> tuple[str, ...]:
        return self.unserved_partitions

    async def samples(self, request: SamplesRequest, scope: QueryScope) -> SamplesAnswer:
        await self._record(request, scope)
        found = {}
        for labels, samples in self.series_held.items():
            within = [sample for sample in samples if request.within.first <= sample[0] <= request.within.last]
            if within and all(matches(matcher, dict(labels)) for matcher in request.selector):
                found[labels] = within
        count = sum(map(len, found.values()))
        if len(found) > request.max_series:
            raise QueryTooLarge(f"exceeded series limit ({request.max_series})")
        if count > request.max_samples:
            raise QueryTooLarge(f"exceeded sample limit ({request.max_samples})", remedy="Ask for less")
        return answer_of(found, self.warnings)

    async def series(self, request: SeriesRequest, scope: QueryScope) -> SeriesAnswer:
        await self._record(request, scope)
        found: dict[Labels, Samples] = {
            labels: []
            for labels in self.series_held
            if any(all(matches(matcher, dict(labels)) for matcher in selector) for selector in request.selectors)
        }
        shown = dict(list(found.items())[: request.limit])
        return SeriesAnswer(answer_of(shown).keys, len(found) > request.limit, self.warnings)

    async def count_series(
        self, selectors: tuple[Selector, ...], _within: TimeRange | None, _scope: QueryScope
    ) -> SeriesCount:
        found = [
            labels
            for labels in self.series_held
            if any(all(matches(matcher, dict(labels)) for matcher in selector) for selector in selectors)
        ]
        return SeriesCount(len(found))

    async def _record(self, request: SamplesRequest | SeriesRequest, scope: QueryScope) -> None:
        self.requests.append(request)
        await self.before(scope)


def matches(matcher: Matcher, labels: Mapping[str, str]) -> bool:
    value = labels.get(matcher.label, "")
    if matcher.op in (MatchOp.EQUAL, MatchOp.NOT_EQUAL):
        return (value == matcher.value) is (matcher.op is MatchOp.EQUAL)
    return (re.fullmatch(matcher.value, value) is not None) is (matcher.op is MatchOp.MATCH)


async def _nothing(_scope: QueryScope) -> None:
    """The default for `before`."""
