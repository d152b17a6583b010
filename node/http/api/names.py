"""`/api/v1/series`, `/api/v1/labels` and `/api/v1/label/<name>/values`."""

from dataclasses import dataclass

from aiohttp import web

from strandline.node.http.api.label_names import label_name_of
from strandline.node.http.api.pieces import series_json, terms_json
from strandline.node.http.api.sending import Answer, send
from strandline.node.http.parameters import parameters_of
from strandline.node.http.routes import Access, Route
from strandline.node.http.working import Workers
from strandline.node.query.answers import SeriesAnswer, TermsAnswer
from strandline.node.query.asks import LabelNamesAsk, LabelValuesAsk, SeriesAsk
from strandline.node.query.queries import Cancellation, NodeQueries


@dataclass(frozen=True, slots=True)
class NamesApi:
    """Which series there are, and what their labels are."""

    queries: NodeQueries
    workers: Workers
    max_names: int

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

        def work(cancellation: Cancellation) -> Answer:
            limit = parameters.limit(self.max_names)
            ask = SeriesAsk(parameters.selectors(required=True), parameters.time_range(), limit)
            answer = self.queries.series(ask, cancellation)
            return Answer(series_json(answer.keys), _warnings(answer, limit))

        return await send(request, self.workers, work, timeout_s=parameters.timeout_s())

    async def labels(self, request: web.Request) -> web.StreamResponse:
        """The names of labels."""
        parameters = await parameters_of(request)

        def work(cancellation: Cancellation) -> Answer:
            limit = parameters.limit(self.max_names)
            ask = LabelNamesAsk(parameters.selectors(required=False), parameters.time_range(), limit)
            answer = self.queries.label_names(ask, cancellation)
            return Answer(terms_json(answer), _warnings(answer, limit))

        return await send(request, self.workers, work, timeout_s=parameters.timeout_s())

    async def values(self, request: web.Request) -> web.StreamResponse:
        """The values of one label."""
        label = label_name_of(request.match_info["name"])
        parameters = await parameters_of(request)

        def work(cancellation: Cancellation) -> Answer:
            limit = parameters.limit(self.max_names)
            ask = LabelValuesAsk(label, parameters.selectors(required=False), parameters.time_range(), limit)
            answer = self.queries.label_values(ask, cancellation)
            return Answer(terms_json(answer), _warnings(answer, limit))

        return await send(request, self.workers, work, timeout_s=parameters.timeout_s())


def _warnings(answer: SeriesAnswer | TermsAnswer, limit: int) -> tuple[str, ...]:
    if not answer.more:
        return answer.warnings
    return (*answer.warnings, f"results truncated due to limit: there are more than the {limit} that are listed")
