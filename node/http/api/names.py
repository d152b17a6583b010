"""`/api/v1/series`, `/api/v1/labels` and `/api/v1/label/<name>/values`."""

from collections.abc import Sequence

from strandline.node.http.api.cached_lists import CachedLists, ListKey
from strandline.node.http.api.json_pieces import series_json, terms_json
from strandline.node.http.api.label_names import label_name_of
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
    """Series, label names and label values. For one event loop."""

    def __init__(self, queries: NodeQueries, workers: Workers, settings: QuerySettings) -> None:
        self._queries, self._workers, self._settings = queries, workers, settings
        self._cached = CachedLists()

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
        """Answers with the cached list if there is one. Lists of all series are cached by index version."""
        scope = self._scope(request, given)
        version = self._queries.index_version() if not shard_request.selectors else None
        if version is None or not version.holds_for(shard_request.within):
            return await self._requested(request, scope, shard_request)
        label = shard_request.label if isinstance(shard_request, LabelValuesRequest) else None
        key = ListKey(label, shard_request.limit, accepts_gzip(request.headers.get("accept-encoding", "")))
        cached = self._cached.get(version, key)
        if cached is not None:
            self._queries.answered_from_cache(shard_request)
            return cached
        return await self._requested(request, scope, shard_request, cache_as=(version, key))

    async def _requested(
        self,
        request: Request,
        scope: QueryScope,
        shard_request: LabelNamesRequest | LabelValuesRequest,
        cache_as: tuple[IndexVersion, ListKey] | None = None,
    ) -> AnyResponse:
        if isinstance(shard_request, LabelNamesRequest):
            found = await self._queries.label_names(shard_request, scope)
        else:
            found = await self._queries.label_values(shard_request, scope)
        warnings, size = _warnings(found, shard_request.limit), len(found.data) + 2 * found.offsets.nbytes
        response = await respond(request, self._workers, Answer(terms_json(found), size, warnings))
        # Empty lists are not cached: they are fast to request again, and clients can name any number of labels. The
        # warning about unserved partitions does not prevent caching: it belongs to the version.
        is_complete = found.of_all and (not warnings or warnings == self._queries.unserved())
        if cache_as is not None and isinstance(response, Response) and is_complete and len(found):
            self._cached.add(*cache_as, response)
        return response

    def _limit(self, given: Parameters) -> int:
        return given.limit(self._settings.max_names)

    def _scope(self, request: Request, given: Parameters) -> QueryScope:
        return scope_of(request, given, self._settings)


def scope_of(request: Request, given: Parameters, settings: QuerySettings) -> QueryScope:
    """The scope of a request: the timeout of the client, limited by `query.timeout`."""
    wanted, max_s = given.timeout_s(), settings.timeout.seconds
    if wanted is None or wanted >= max_s:
        return limited_scope(request, max_s)
    return limited_scope(request, wanted, by_client=True)


def limited_scope(request: Request, timeout_s: float, *, by_client: bool = False) -> QueryScope:
    """The scope of a request that has `timeout_s` from its arrival to the end of its answer. `by_client`: the client
    has set the timeout.
    """
    request.limit_time(timeout_s, by_client=by_client)
    return QueryScope(timeout_s, request.memory, request.deadline)


def _warnings(found: SeriesAnswer | TermsAnswer, limit: int) -> tuple[str, ...]:
    if not found.more:
        return found.warnings
    return (*found.warnings, f"results truncated due to limit: there are more than the {limit} that are listed")
