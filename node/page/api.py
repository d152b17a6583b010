"""The JSON API of the page, in the envelope of Prometheus' API. Every list has a limit."""

from dataclasses import dataclass
from heapq import nsmallest

import orjson

import strandline
from strandline.clock import Clock
from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.node.http.api.names import limited_scope
from strandline.node.http.api.status import estimates_of
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import parameters_of
from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.page.assets import asset_routes, load_assets
from strandline.node.page.hours import CachedHours, HourReadiness, HoursSource
from strandline.node.page.shard_figures import NodeFigures, figures_of, process_figures
from strandline.node.query.answers import BucketsAnswer, CardinalityAnswer
from strandline.node.query.queries import NodeQueries, QueryScope
from strandline.node.query.shard_requests import BucketsRequest, CardinalityRequest
from strandline.node.settings import Settings
from strandline.node.shard.bucket_report import BucketFigures
from strandline.node.status.processes import NodeStatus
from strandline.node.workers import Workers
from strandline.recovery.periods import HOUR, HOURS_A_DAY

_PREFIX = "/api/v1/strandline"
_METHODS = ("GET", "POST")
MAX_BUCKETS = 1000
_DEFAULT_BUCKETS = 200
MAX_ENTRIES = 1000
_DEFAULT_ENTRIES = 10
MAX_DAYS = 31
_DEFAULT_DAYS = 2


@dataclass(frozen=True, slots=True)
class CardinalityFigures:
    """The largest metrics, labels and label pairs of the index. `label_names` is the total number of labels.
    `top_values` are the largest values of `label`, if it was requested. `samples` is an estimate.
    """

    series: int
    samples: int | None
    label_names: int
    top_labels: tuple[LabelCardinality, ...]
    top_metrics: tuple[ValueCardinality, ...]
    top_pairs: tuple[ValueCardinality, ...]
    label: str | None
    top_values: tuple[ValueCardinality, ...]
    exact_values: bool


@dataclass(frozen=True, slots=True)
class _Envelope:
    status: str
    data: NodeFigures | CardinalityFigures | tuple[BucketFigures, ...] | tuple[HourReadiness, ...]
    warnings: tuple[str, ...]


class PageApi:
    """The HTTP handlers of the page. Used by one event loop."""

    def __init__(
        self,
        node: NodeStatus,
        queries: NodeQueries,
        workers: Workers,
        hours: HoursSource,
        *,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._node, self._queries, self._workers = node, queries, workers
        self._hours = CachedHours(hours, clock)
        self._dataset, self._clock = settings.dataset.name, clock
        self._timeout_s = settings.query.timeout.seconds

    async def shards(self, request: Request) -> Response:
        """The status of the shards. Sends them no requests, so that it is answered even if they are busy."""
        await parameters_of(request)
        now = self._clock.now_ms()
        shards = tuple(figures_of(one, now) for one in self._node.shards())
        processes = tuple(map(process_figures, self._node.processes()))
        started, waits_for = self._node.started_ms(), self._node.waits_for()
        partitions = self._node.partitions()
        return _answer(
            NodeFigures(self._dataset, strandline.__version__, started, now, shards, processes, waits_for, partitions)
        )

    async def buckets(self, request: Request) -> Response:
        """`start`, `end`, `limit`: the newest buckets of a range, with their numbers of active series."""
        given = await parameters_of(request)
        limit = given.limit(MAX_BUCKETS, default=_DEFAULT_BUCKETS)
        # One more than the limit, to see whether there are more.
        shard_request = BucketsRequest(given.time_range(), limit + 1)
        answer = await self._queries.buckets(shard_request, self._scope(request))
        return _answer(*_newest(answer, limit))

    async def cardinality(self, request: Request) -> Response:
        """`match[]`, `start`, `end`, `limit`, `label`, `samples=true`: the largest metrics, labels and label pairs."""
        given = await parameters_of(request)
        shard_request = CardinalityRequest(
            given.selectors(required=False),
            given.time_range(),
            given.limit(MAX_ENTRIES, default=_DEFAULT_ENTRIES),
            given.text("label"),
            samples=given.text("samples") == "true",
        )
        answer = await self._queries.cardinality(shard_request, self._scope(request))
        return _answer(_tops(answer, shard_request), answer.warnings + estimates_of(answer))

    async def hours(self, request: Request) -> Response:
        """`days`: the readiness of the hours of this number of days, up to the current hour, oldest first."""
        days = _days((await parameters_of(request)).text("days"))
        last = self._clock.now_ms() // HOUR
        first = last + 1 - days * HOURS_A_DAY
        return _answer(await self._workers.run(lambda: self._hours.hours(first, last)))

    def _scope(self, request: Request) -> QueryScope:
        return limited_scope(request, self._timeout_s)


def page_routes(
    node: NodeStatus,
    queries: NodeQueries,
    workers: Workers,
    hours: HoursSource,
    *,
    settings: Settings,
    clock: Clock,
) -> tuple[Route, ...]:
    """The routes of the page, its files and its API."""
    api = PageApi(node, queries, workers, hours, settings=settings, clock=clock)
    return (
        *asset_routes(load_assets()),
        Route(_METHODS, f"{_PREFIX}/shards", api.shards, Access.READ),
        Route(_METHODS, f"{_PREFIX}/buckets", api.buckets, Access.READ),
        Route(_METHODS, f"{_PREFIX}/cardinality", api.cardinality, Access.READ),
        Route(_METHODS, f"{_PREFIX}/hours", api.hours, Access.READ),
    )


def _tops(answer: CardinalityAnswer, shard_request: CardinalityRequest) -> CardinalityFigures:
    """Cut to the limit: an index may have very many labels."""
    limit = shard_request.limit
    return CardinalityFigures(
        series=answer.series,
        samples=answer.samples,
        label_names=len(answer.labels),
        top_labels=tuple(nsmallest(limit, answer.labels, key=lambda label: (-label.values, label.name))),
        top_metrics=answer.top_metrics_by_series[:limit],
        top_pairs=answer.top_pairs_by_series[:limit],
        label=shard_request.label,
        top_values=answer.top_values_by_series[:limit],
        exact_values=answer.is_exact,
    )


def _newest(answer: BucketsAnswer, limit: int) -> tuple[tuple[BucketFigures, ...], tuple[str, ...]]:
    times = sorted({one.bucket for one in answer.buckets})
    if len(times) <= limit:
        return answer.buckets, answer.warnings
    first = times[-limit] if limit else times[-1] + 1
    cut_off = f"results truncated due to limit: there are more than the {limit} newest buckets that are listed"
    return tuple(one for one in answer.buckets if one.bucket >= first), (*answer.warnings, cut_off)


def _days(written: str | None) -> int:
    if written is None:
        return _DEFAULT_DAYS
    if not (written.isascii() and written.isdigit() and len(written) <= 4 and 1 <= int(written) <= MAX_DAYS):
        raise BadParameter(f'the parameter "days" must be an integer from 1 to {MAX_DAYS}: {written[:20]!r}')
    return int(written)


def _answer(
    data: NodeFigures | CardinalityFigures | tuple[BucketFigures, ...] | tuple[HourReadiness, ...],
    warnings: tuple[str, ...] = (),
) -> Response:
    return Response(orjson.dumps(_Envelope("success", data, warnings)))
