"""`/api/v1/series`, `/api/v1/labels` and `/api/v1/label/<name>/values`."""

from dataclasses import dataclass

from aiohttp import web

from strandline.node.http.api.lookups import READERS, answer_of
from strandline.node.http.api.quick_lookups import QuickLookup, QuickLookups
from strandline.node.http.api.sending import Answer, send
from strandline.node.http.connections import begun_of
from strandline.node.http.parameters import parameters_of
from strandline.node.http.quick_handlers import QuickHandler
from strandline.node.http.routes import Access, Handler, Route
from strandline.node.http.working import Workers
from strandline.node.query.asks import (
    LABEL_NAMES,
    LABEL_VALUES,
    SERIES,
    LabelNamesAsk,
    LabelValuesAsk,
    Lookup,
    SeriesAsk,
)
from strandline.node.query.queries import Cancellation, NodeQueries


@dataclass(frozen=True, slots=True)
class NamesApi:
    """Which series there are, and what their labels are. Without a quick side threads ask every question."""

    queries: NodeQueries
    workers: Workers
    max_names: int
    quick: QuickLookups | None = None

    def routes(self) -> tuple[Route, ...]:
        """Prometheus' paths."""
        forms = ("GET", "POST")
        return (
            self._route(forms, "/api/v1/series", SERIES),
            self._route(forms, "/api/v1/labels", LABEL_NAMES),
            self._route(("GET",), "/api/v1/label/{name}/values", LABEL_VALUES),
        )

    def _route(self, methods: tuple[str, ...], path: str, kind: str) -> Route:
        quick: QuickHandler | None = self.quick.handler(kind) if self.quick is not None else None
        return Route(methods, path, self._handler(kind), Access.READ, quick)

    def _handler(self, kind: str) -> Handler:
        read = READERS[kind]

        async def handler(request: web.Request) -> web.StreamResponse:
            begun = begun_of(request)
            if begun is not None and isinstance(begun.answer, QuickLookup):
                lookup = begun.answer
                return await send(request, self.workers, lookup.fetched, timeout_s=lookup.timeout_s, keep=lookup.keep)
            parameters = await parameters_of(request)

            def work(cancellation: Cancellation) -> Answer:
                ask = read(parameters, request.match_info.get("name", ""), self.max_names)
                return self._asked(ask, cancellation)

            return await send(request, self.workers, work, timeout_s=parameters.timeout_s())

        return handler

    def _asked(self, ask: Lookup, cancellation: Cancellation) -> Answer:
        match ask:
            case SeriesAsk():
                return answer_of(self.queries.series(ask, cancellation), ask.limit)
            case LabelNamesAsk():
                return answer_of(self.queries.label_names(ask, cancellation), ask.limit)
            case LabelValuesAsk():
                return answer_of(self.queries.label_values(ask, cancellation), ask.limit)
