"""`/api/v1/status/...`, and the questions of Grafana and others that have an empty answer here."""

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

# The Prometheus whose API this is. Grafana decides by it which parameters it may send.
_PROMETHEUS = "3.15.0"
_MOST_TOPS = 10_000
_SHOWN = 100
_MOST_BUCKETS = 100_000
_NAMED_ESTIMATES = 10
_ESTIMATED_SERIES = (
    "the number of series is an estimate, and other counts of series are upper bounds: there are too many to compare "
    "them between shards, and one that is in two shards counts in each"
)


@dataclass(frozen=True, slots=True)
class StatusApi:
    """What the node is, and what makes its index large."""

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
        if (limit := given.text("limit")) and not limit.strip("0"):
            raise BadParameter('the parameter "limit" is not above zero')
        most, within = given.limit(_MOST_TOPS, default=DEFAULT_LIMIT), given.time_range()
        scope = scope_of(request, given, self.settings)
        found = await self.queries.cardinality(CardinalityRequest(given.selectors(required=False), within, most), scope)
        buckets = await self.queries.buckets(BucketsRequest(within, _MOST_BUCKETS), scope)
        warnings = found.warnings + buckets.warnings + estimates_of(found)
        body = await self.workers.run(lambda: _tsdb_json(found, buckets, most))
        return await respond(request, self.workers, Answer((body,), len(body), warnings))

    async def build_info(self, _request: Request) -> AnyResponse:
        """Which Prometheus this is like, and which Strandline it is."""
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
        """Since when it runs, and what time it is."""
        return Response.success({"startTime": _rfc3339(self.started_ms), "serverTime": _rfc3339(self.clock.now_ms())})

    async def metadata(self, request: Request) -> AnyResponse:
        """None is kept."""
        given = await parameters_of(request)
        for name in ("limit", "limit_per_metric"):
            given.limit(_MOST_TOPS, name=name)
        return Response.success({})

    async def exemplars(self, request: Request) -> AnyResponse:
        """None are kept. The expression is not read: a client may ask with any of PromQL."""
        given = await parameters_of(request)
        given.required("query")
        given.time_range()
        return Response.success([])

    async def rules(self, request: Request) -> AnyResponse:
        """None are evaluated here. Grafana asks any data source of this kind for them."""
        given = await parameters_of(request)
        if (kind := given.text("type")) not in (None, "alert", "record"):
            raise BadParameter(f'the parameter "type" is neither "alert" nor "record": {kind[:_SHOWN]!r}')
        given.selectors(required=False)
        return Response.success({"groups": []})

    async def alerts(self, _request: Request) -> AnyResponse:
        """None, for the same reason."""
        return Response.success({"alerts": []})


def estimates_of(found: CardinalityAnswer) -> tuple[str, ...]:
    """Which figures of several shards are estimates, as warnings."""
    warnings = []
    if found.estimated_series:
        warnings.append(_ESTIMATED_SERIES)
    if names := found.estimated_labels:
        shown = ", ".join(names[:_NAMED_ESTIMATES])
        more = f" and {len(names) - _NAMED_ESTIMATES} more" if len(names) > _NAMED_ESTIMATES else ""
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
                # Samples lie in segments of many series; there is no chunk of one.
                "chunkCount": 0,
                # Of nothing at all the beginning lies behind the end, in Prometheus, too.
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
