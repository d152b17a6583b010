"""`/api/v1/series`, `/api/v1/labels` and `/api/v1/label/<name>/values`."""

from collections.abc import Sequence

from strandline.node.http.api.cached_lists import CachedLists, ListKey
from strandline.node.http.api.label_names import label_name_of
from strandline.node.http.api.pieces import series_json, terms_json
from strandline.node.http.api.sending import Answer, respond
from strandline.node.http.headers import accepts_gzip
from strandline.node.http.parameters import Parameters, parameters_of
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response
from strandline.node.http.routes import Access, Route
from strandline.node.query.answers import SeriesAnswer, TermsAnswer
from strandline.node.query.index_version import IndexVersion
from strandline.node.query.queries import NodeQueries, QueryScope
from strandline.node.query.shard_requests import LabelNamesRequest, LabelValuesRequest, SeriesRequest
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers


class NamesApi:
    """Which series there are, and what their labels are. It belongs to one event loop."""

    def __init__(self, queries: NodeQueries, workers: Workers, settings: QuerySettings) -> None:
        self._queries, self._workers, self._settings = queries, workers, settings
        self._kept = CachedLists()

    def routes(self) -> Sequence[Route]:
        """Prometheus' paths."""
        forms = ("GET", "POST")
        return (
            Route(forms, "/api/v1/series", self.series, Access.READ),
            Route(forms, "/api/v1/labels", self.labels, Access.READ),
            Route(("GET",), "/api/v1/label/{name}/values", self.values, Access.READ),
        )

    async def series(self, request: Request) -> AnyResponse:
        """The label sets of the series that a selector matches."""
        given = await parameters_of(request)
        shard_request = SeriesRequest(given.selectors(required=True), given.time_range(), self._limit(given))
        found = await self._queries.series(shard_request, self._scope(request, given))
        size = len(found.keys.data) + found.keys.offsets.nbytes
        return await respond(
            request, self._workers, Answer(series_json(found.keys), size, _warnings(found, shard_request.limit))
        )

    async def labels(self, request: Request) -> AnyResponse:
        """The names of labels."""
        given = await parameters_of(request)
        shard_request = LabelNamesRequest(given.selectors(required=False), given.time_range(), self._limit(given))
        return await self._listed(request, given, shard_request)

    async def values(self, request: Request) -> AnyResponse:
        """The values of one label."""
        given = await parameters_of(request)
        label, selectors = label_name_of(request.wildcard("name")), given.selectors(required=False)
        shard_request = LabelValuesRequest(label, selectors, given.time_range(), self._limit(given))
        return await self._listed(request, given, shard_request)

    async def _listed(
        self, request: Request, given: Parameters, shard_request: LabelNamesRequest | LabelValuesRequest
    ) -> AnyResponse:
        """A list of all series is kept for as long as the shards say that it holds."""
        scope = self._scope(request, given)
        version = self._queries.index_version() if not shard_request.selectors else None
        if version is None or not version.holds_for(shard_request.within):
            return await self._asked(request, scope, shard_request)
        label = shard_request.label if isinstance(shard_request, LabelValuesRequest) else None
        key = ListKey(label, shard_request.limit, accepts_gzip(request.headers.get("accept-encoding", "")))
        answered_from_cache = self._kept.get(version, key)
        if answered_from_cache is not None:
            self._queries.answered_from_cache(shard_request)
            return answered_from_cache
        return await self._asked(request, scope, shard_request, keep=(version, key))

    async def _asked(
        self,
        request: Request,
        scope: QueryScope,
        shard_request: LabelNamesRequest | LabelValuesRequest,
        keep: tuple[IndexVersion, ListKey] | None = None,
    ) -> AnyResponse:
        if isinstance(shard_request, LabelNamesRequest):
            found = await self._queries.label_names(shard_request, scope)
        else:
            found = await self._queries.label_values(shard_request, scope)
        warnings, size = _warnings(found, shard_request.limit), len(found.data) + 2 * found.offsets.nbytes
        response = await respond(request, self._workers, Answer(terms_json(found), size, warnings))
        # An empty list is as quick to ask for again, and there are as many of them as clients think up. What the node
        # does not serve belongs to the version.
        is_whole = found.of_all and (not warnings or warnings == self._queries.unserved())
        if keep is not None and isinstance(response, Response) and is_whole and len(found):
            self._kept.keep(*keep, response)
        return response

    def _limit(self, given: Parameters) -> int:
        return given.limit(self._settings.max_names)

    def _scope(self, request: Request, given: Parameters) -> QueryScope:
        return scope_of(request, given, self._settings)


def scope_of(request: Request, given: Parameters, settings: QuerySettings) -> QueryScope:
    """How long this request may take, until its client has the answer: no longer than the settings say."""
    wanted, most = given.timeout_s(), settings.timeout.seconds
    if wanted is None or wanted >= most:
        return limited_scope(request, most)
    return limited_scope(request, wanted, wished=True)


def limited_scope(request: Request, timeout_s: float, *, wished: bool = False) -> QueryScope:
    """A scope for the queries of a request that has so many seconds from its arrival to the end of its answer; `wished`
    if its client asked for that.
    """
    request.limit_time(timeout_s, wished=wished)
    return QueryScope(timeout_s, request.memory, request.deadline)


def _warnings(found: SeriesAnswer | TermsAnswer, limit: int) -> tuple[str, ...]:
    if not found.more:
        return found.warnings
    return (*found.warnings, f"results truncated due to limit: there are more than the {limit} that are listed")
