"""`/api/v1/series`, `/api/v1/labels` and `/api/v1/label/<name>/values`."""

from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from strandline.node.http.api.kept_lists import KeptLists, ListKey
from strandline.node.http.api.label_names import label_name_of
from strandline.node.http.api.pieces import series_json, terms_json
from strandline.node.http.api.quick_way import QuickWay
from strandline.node.http.api.sending import Answer, Whole, accepts_gzip, send
from strandline.node.http.parameters import Parameters, parameters_of
from strandline.node.http.routes import Access, Route
from strandline.node.http.working import Workers
from strandline.node.query.answers import SeriesAnswer, TermsAnswer
from strandline.node.query.asks import LabelNamesAsk, LabelValuesAsk, SeriesAsk
from strandline.node.query.queries import Cancellation, NodeQueries
from strandline.node.query.quick import Lookup


@dataclass(frozen=True, slots=True)
class NamesApi:
    """Which series there are, and what their labels are. Without a quick way threads ask every question."""

    queries: NodeQueries
    workers: Workers
    max_names: int
    quick: QuickWay | None = None
    kept: KeptLists = field(default_factory=KeptLists)

    def routes(self) -> tuple[Route, ...]:
        """Prometheus' paths."""
        forms = ("GET", "POST")
        return (
            Route(forms, "/api/v1/series", self.series, Access.READ),
            Route(forms, "/api/v1/labels", self.labels, Access.READ),
            Route(("GET",), "/api/v1/label/{name}/values", self.values, Access.READ),
        )

    async def series(self, request: web.Request) -> web.StreamResponse:
        """The label sets of the series that a selector matches."""
        parameters = await parameters_of(request)

        def ask() -> SeriesAsk:
            selectors = parameters.selectors(required=True)
            return SeriesAsk(selectors, parameters.time_range(), parameters.limit(self.max_names))

        return await self._answered(request, parameters, ask)

    async def labels(self, request: web.Request) -> web.StreamResponse:
        """The names of labels."""
        parameters = await parameters_of(request)

        def ask() -> LabelNamesAsk:
            selectors = parameters.selectors(required=False)
            return LabelNamesAsk(selectors, parameters.time_range(), parameters.limit(self.max_names))

        return await self._answered(request, parameters, ask)

    async def values(self, request: web.Request) -> web.StreamResponse:
        """The values of one label."""
        label = label_name_of(request.match_info["name"])
        parameters = await parameters_of(request)

        def ask() -> LabelValuesAsk:
            selectors = parameters.selectors(required=False)
            return LabelValuesAsk(label, selectors, parameters.time_range(), parameters.limit(self.max_names))

        return await self._answered(request, parameters, ask)

    async def _answered(
        self, request: web.Request, parameters: Parameters, read: Callable[[], Lookup]
    ) -> web.StreamResponse:
        timeout_s = parameters.timeout_s()
        if self.quick is None or not self.quick.suits(request):
            return await send(
                request, self.workers, lambda cancellation: self._asked(read(), cancellation), timeout_s=timeout_s
            )
        queries, ask, key = self.quick.queries, read(), None
        edition = queries.edition() if not _selects(ask) else None
        if edition is not None:
            key = _list_key(request, ask)
            if edition.holds_for(ask.within) and (whole := self.kept.get(edition, key)) is not None:
                queries.kept(ask)
                return whole.response()

        def keep(whole: Whole) -> None:
            # The edition of before it was asked: what came meanwhile is of that one, or newer.
            if edition is not None and key is not None:
                self.kept.keep(edition, key, whole)

        with self.quick.place() as is_free:
            coming = queries.begin_at_once(ask, self.workers.cancellation(timeout_s)) if is_free else None

            def work(cancellation: Cancellation) -> Answer:
                return self._asked(ask, cancellation) if coming is None else _told(coming.answer(), ask.limit)

            return await send(request, self.workers, work, timeout_s=timeout_s, coming=coming, keep=keep)

    def _asked(self, ask: Lookup, cancellation: Cancellation) -> Answer:
        match ask:
            case SeriesAsk():
                return _told(self.queries.series(ask, cancellation), ask.limit)
            case LabelNamesAsk():
                return _told(self.queries.label_names(ask, cancellation), ask.limit)
            case LabelValuesAsk():
                return _told(self.queries.label_values(ask, cancellation), ask.limit)


def _selects(ask: Lookup) -> bool:
    return isinstance(ask, SeriesAsk) or bool(ask.selectors)


def _list_key(request: web.Request, ask: Lookup) -> ListKey:
    gzip = accepts_gzip(request.headers.get("Accept-Encoding", ""))
    return ListKey(ask.label if isinstance(ask, LabelValuesAsk) else None, ask.limit, gzip)


def _told(answer: SeriesAnswer | TermsAnswer, limit: int) -> Answer:
    warnings = _warnings(answer, limit)
    if isinstance(answer, SeriesAnswer):
        return Answer(series_json(answer.keys), warnings)
    # One that has nothing in it is as quick to ask for again, and there are as many of them as somebody thinks up.
    return Answer(terms_json(answer), warnings, may_be_kept=answer.of_all and len(answer) > 0 and not warnings)


def _warnings(answer: SeriesAnswer | TermsAnswer, limit: int) -> tuple[str, ...]:
    if not answer.more:
        return answer.warnings
    return (*answer.warnings, f"results truncated due to limit: there are more than the {limit} that are listed")
