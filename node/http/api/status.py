"""`/api/v1/status/...`, and paths that Grafana and others call and that have an empty answer here."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nsmallest

import orjson

from strandline import __version__
from strandline.clock import Clock
from strandline.index.cardinality import DEFAULT_LIMIT, ValueCardinality
from strandline.node.http.api.names import scope_of
from strandline.node.http.api.sending import Answer, respond
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import parameters_of
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response
from strandline.node.http.routes import Access, Route
from strandline.node.query.answers import BucketsAnswer, CardinalityAnswer
from strandline.node.query.queries import NodeQueries
from strandline.node.query.shard_requests import BucketsRequest, CardinalityRequest
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers

# The version of Prometheus whose API this is. Grafana chooses its parameters by it.
_PROMETHEUS = "3.15.0"
_MAX_TOPS = 10_000
_SHOWN = 100
_MAX_BUCKETS = 100_000
_MAX_NAMED = 10
_ESTIMATED_SERIES = (
    "the number of series is an estimate, and other counts of series are upper bounds: there are too many to compare "
    "them between shards, and one that is in two shards counts in each"
)


@dataclass(frozen=True, slots=True)
class StatusApi:
    """Versions, the cardinality of the index, and empty answers."""

    queries: NodeQueries
    workers: Workers
    settings: QuerySettings
    clock: Clock
    started_ms: int

    def routes(self) -> tuple[Route, ...]:
        """Prometheus' paths."""
        forms = ("GET", "POST")
        return (
            Route(("GET",), "/api/v1/status/tsdb", self.tsdb, Access.READ),
            Route(("GET",), "/api/v1/status/buildinfo", self.build_info, Access.READ),
            Route(("GET",), "/api/v1/status/runtimeinfo", self.runtime_info, Access.READ),
            Route(("GET",), "/api/v1/metadata", self.metadata, Access.READ),
            Route(forms, "/api/v1/query_exemplars", self.exemplars, Access.READ),
            Route(("GET",), "/api/v1/rules", self.rules, Access.READ),
            Route(("GET",), "/api/v1/alerts", self.alerts, Access.READ),
        )

    async def tsdb(self, request: Request) -> AnyResponse:
        """The cardinality of the index. Beyond Prometheus' `limit` it takes `match[]`, `start` and `end`."""
        given = await parameters_of(request)
        if (written := given.text("limit")) and not written.strip("0"):
            raise BadParameter('the parameter "limit" must be positive')
        limit, within = given.limit(_MAX_TOPS, default=DEFAULT_LIMIT), given.time_range()
        scope = scope_of(request, given, self.settings)
        found = await self.queries.cardinality(
            CardinalityRequest(given.selectors(required=False), within, limit), scope
        )
        buckets = await self.queries.buckets(BucketsRequest(within, _MAX_BUCKETS), scope)
        warnings = found.warnings + buckets.warnings + estimates_of(found)
        body = await self.workers.run(lambda: _tsdb_json(found, buckets, limit))
        return await respond(request, self.workers, Answer((body,), len(body), warnings))

    async def build_info(self, _request: Request) -> AnyResponse:
        """The version of Prometheus whose API this is, and the version of Strandline."""
        return Response.success(
            {
                "version": _PROMETHEUS,
                "revision": f"strandline-{__version__}",
                "branch": "",
                "buildUser": "",
                "buildDate": "",
                "goVersion": "",
            }
        )

    async def runtime_info(self, _request: Request) -> AnyResponse:
        """The start time and the current time."""
        return Response.success({"startTime": _rfc3339(self.started_ms), "serverTime": _rfc3339(self.clock.now_ms())})

    async def metadata(self, request: Request) -> AnyResponse:
        """Empty: metadata is not stored."""
        given = await parameters_of(request)
        for name in ("limit", "limit_per_metric"):
            given.limit(_MAX_TOPS, name=name)
        return Response.success({})

    async def exemplars(self, request: Request) -> AnyResponse:
        """Empty: exemplars are not stored. The expression is not parsed."""
        given = await parameters_of(request)
        given.required("query")
        given.time_range()
        return Response.success([])

    async def rules(self, request: Request) -> AnyResponse:
        """Empty: rules are not evaluated here. Grafana requests them from every Prometheus data source."""
        given = await parameters_of(request)
        if (kind := given.text("type")) not in (None, "alert", "record"):
            raise BadParameter(f'the parameter "type" is neither "alert" nor "record": {kind[:_SHOWN]!r}')
        given.selectors(required=False)
        return Response.success({"groups": []})

    async def alerts(self, _request: Request) -> AnyResponse:
        """Empty, for the same reason."""
        return Response.success({"alerts": []})


def estimates_of(found: CardinalityAnswer) -> tuple[str, ...]:
    """Warnings about the figures that are estimates."""
    warnings = []
    if found.estimated_series:
        warnings.append(_ESTIMATED_SERIES)
    if names := found.estimated_labels:
        shown = ", ".join(names[:_MAX_NAMED])
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        warnings.append(
            f"the numbers and bytes of the values of {shown}{more} are estimates, and counts of series by these values "
            "lower bounds: there are too many values to compare them between shards"
        )
    return tuple(warnings)


def _tsdb_json(found: CardinalityAnswer, buckets: BucketsAnswer, limit: int) -> bytes:
    by_values = nsmallest(limit, found.labels, key=lambda label: (-label.values, label.name))
    by_bytes = nsmallest(limit, found.labels, key=lambda label: (-label.value_bytes, label.name))
    return orjson.dumps(
        {
            "headStats": {
                "numSeries": found.series,
                "numLabelPairs": sum(label.values for label in found.labels),
                # Segments have samples of many series; there are no chunks per series.
                "chunkCount": 0,
                # Without data, the minimum is above the maximum, as in Prometheus.
                "minTime": min((one.start for one in buckets.buckets), default=2**63 - 1),
                "maxTime": max((one.end for one in buckets.buckets), default=-(2**63)),
            },
            "seriesCountByMetricName": _values(found.top_metrics_by_series, pairs=False),
            "labelValueCountByLabelName": [{"name": label.name, "value": label.values} for label in by_values],
            "memoryInBytesByLabelName": [{"name": label.name, "value": label.value_bytes} for label in by_bytes],
            "seriesCountByLabelValuePair": _values(found.top_pairs_by_series, pairs=True),
        }
    )


def _values(ranked: Iterable[ValueCardinality], *, pairs: bool) -> list[dict[str, str | int]]:
    return [{"name": f"{one.label}={one.value}" if pairs else one.value, "value": one.series} for one in ranked]


def _rfc3339(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
