"""A node's answers to remote reads, from a few series in memory."""

import re
from collections.abc import Awaitable, Callable, Mapping

from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.answers import SamplesAnswer, SeriesAnswer, SeriesCount
from strandline.node.query.asks import SamplesAsk, Selector, SeriesAsk
from strandline.node.query.queries import QueryScope, QueryTooLarge
from strandline.time_range import TimeRange
from support.remote_read import Labels, Samples, answer_of


class ReadQueries:
    """Answers by going through all series. `asks` has the requests. `before` is awaited with the scope of each."""

    def __init__(self, series: Mapping[Labels, Samples], warnings: tuple[str, ...] = ()) -> None:
        self.series_held, self.warnings = dict(sorted(series.items())), warnings
        self.unserved_partitions: tuple[str, ...] = ()
        self.asks: list[SamplesAsk | SeriesAsk] = []
        self.before: Callable[[QueryScope], Awaitable[None]] = _nothing

    def unserved(self) -> tuple[str, ...]:
        return self.unserved_partitions

    async def samples(self, ask: SamplesAsk, scope: QueryScope) -> SamplesAnswer:
        await self._asked(ask, scope)
        found = {}
        for labels, samples in self.series_held.items():
            within = [sample for sample in samples if ask.within.first <= sample[0] <= ask.within.last]
            if within and all(matches(matcher, dict(labels)) for matcher in ask.selector):
                found[labels] = within
        count = sum(map(len, found.values()))
        if len(found) > ask.max_series:
            raise QueryTooLarge(f"exceeded series limit ({ask.max_series})")
        if count > ask.max_samples:
            raise QueryTooLarge(f"exceeded sample limit ({ask.max_samples})", remedy="Ask for less")
        return answer_of(found, self.warnings)

    async def series(self, ask: SeriesAsk, scope: QueryScope) -> SeriesAnswer:
        await self._asked(ask, scope)
        found: dict[Labels, Samples] = {
            labels: []
            for labels in self.series_held
            if any(all(matches(matcher, dict(labels)) for matcher in selector) for selector in ask.selectors)
        }
        shown = dict(list(found.items())[: ask.limit])
        return SeriesAnswer(answer_of(shown).keys, len(found) > ask.limit, self.warnings)

    async def count_series(
        self, selectors: tuple[Selector, ...], _within: TimeRange | None, _scope: QueryScope
    ) -> SeriesCount:
        found = [
            labels
            for labels in self.series_held
            if any(all(matches(matcher, dict(labels)) for matcher in selector) for selector in selectors)
        ]
        return SeriesCount(len(found))

    async def _asked(self, ask: SamplesAsk | SeriesAsk, scope: QueryScope) -> None:
        self.asks.append(ask)
        await self.before(scope)


def matches(matcher: Matcher, labels: Mapping[str, str]) -> bool:
    value = labels.get(matcher.label, "")
    if matcher.op in (MatchOp.EQUAL, MatchOp.NOT_EQUAL):
        return (value == matcher.value) is (matcher.op is MatchOp.EQUAL)
    return (re.fullmatch(matcher.value, value) is not None) is (matcher.op is MatchOp.MATCH)


async def _nothing(_scope: QueryScope) -> None:
    """The default for `before`."""
