"""`/api/v1/query` and `/api/v1/query_range`: all of PromQL."""

from collections.abc import Iterable, Iterator

import numpy as np
import orjson

from strandline.clock import Clock
from strandline.node.http.api.fetching import Fetched, fetch
from strandline.node.http.api.front_evaluation import evaluate_rest
from strandline.node.http.api.json_pieces import Points, matrix_json, scalar_json, string_json, vector_json
from strandline.node.http.api.language import bad_query, query_of
from strandline.node.http.api.names import scope_of
from strandline.node.http.api.query_cost import QueryCost, log_if_heavy
from strandline.node.http.api.sending import Answer, respond
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import Parameters, parameters_of
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse
from strandline.node.http.routes import Access, Route
from strandline.node.query.queries import EvaluationLimits, NodeQueries, PartialAnswer
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers
from strandline.promql.engine import Prepared, prepare
from strandline.promql.errors import ParseError
from strandline.promql.evaluation.results import Result
from strandline.promql.evaluation.rows import Points as ResultPoints
from strandline.promql.plan.nodes import uses_absent
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.query_cache import QueryCache
from strandline.promql.value_types import ValueType

# A longer query is parsed in a worker thread.
_MAX_INLINE_QUERY = 2000
# The maximum number of warnings, and of infos, of an evaluation, as in Prometheus.
_MAX_ANNOTATIONS = 10


class EvaluatingApi:
    """The values of expressions: at one time, or at each step of a range. For one event loop."""

    def __init__(self, queries: NodeQueries, workers: Workers, settings: QuerySettings, clock: Clock) -> None:
        self._queries, self._workers, self._settings, self._clock = queries, workers, settings, clock
        self._limits = EvaluationLimits(settings.max_series, settings.max_samples)
        self._parsed = QueryCache()

    def routes(self) -> tuple[Route, ...]:
        """Prometheus' paths."""
        forms = ("GET", "POST")
        return (
            Route(forms, "/api/v1/query", self.query, Access.READ),
            Route(forms, "/api/v1/query_range", self.query_range, Access.READ),
        )

    async def query(self, request: Request) -> AnyResponse:
        """At one time, `time` or now."""
        given = await parameters_of(request)
        time = given.time("time", self._clock.now_ms())
        return await self._answer(request, given, QueryTimes.instant(time, lookback=self._lookback(given)))

    async def query_range(self, request: Request) -> AnyResponse:
        """At every step from `start` to `end`."""
        given = await parameters_of(request)
        start, end, step = given.time("start"), given.time("end"), given.duration("step")
        if end < start:
            raise BadParameter('invalid parameter "end": end timestamp must not be before start time')
        if step <= 0:
            raise BadParameter(
                'invalid parameter "step": zero or negative query resolution step widths are not accepted. '
                "Try a positive integer"
            )
        # Prometheus counts the steps between the points, so one more point is allowed.
        if (end - start) // step > self._settings.max_points:
            raise BadParameter(
                f"exceeded maximum resolution of {self._settings.max_points:,} points per timeseries. "
                "Try decreasing the query resolution (?step=XX)",
                remedy="Or raise query.max_points",
            )
        return await self._answer(request, given, QueryTimes(start, end, step, self._lookback(given)))

    async def _answer(self, request: Request, given: Parameters, times: QueryTimes) -> AnyResponse:
        text, cost = query_of(given), QueryCost()
        # An invalid limit is refused before anything is read.
        given.limit(1)
        slow_s, many = self._settings.log_slower_than.seconds, self._settings.max_samples // 2
        with log_if_heavy(text, cost, self._clock, slow_s=slow_s, many_samples=many):
            result, warnings = await self._evaluated(request, given, text, times, cost)
        points, truncated = _limited(result, given)
        size = 0 if points is None else points.nbytes
        # What the result was computed from is freed.
        request.memory.shrink(max(0, request.memory.held - size))
        annotations = result.annotations
        return await respond(
            request,
            self._workers,
            Answer(
                _data(result, points, cost if given.text("stats") else None),
                size,
                (*warnings, *annotations.warnings(text, _MAX_ANNOTATIONS), *truncated),
                tuple(annotations.infos(text, _MAX_ANNOTATIONS)),
            ),
        )

    async def _evaluated(
        self, request: Request, given: Parameters, text: str, times: QueryTimes, cost: QueryCost
    ) -> tuple[Result, tuple[str, ...]]:
        """The result, and warnings about shards."""
        scope, clock, began = scope_of(request, given, self._settings), self._clock, self._clock.monotonic()
        prepared = await self._prepared(text, times)
        planned = clock.monotonic()
        cost.prepare_s, cost.fragments = planned - began, len(prepared.fragments)
        try:
            fetched = await fetch(self._queries, prepared.fragments, self._limits, scope)
        finally:
            cost.shards_s = clock.monotonic() - planned
        cost.series, cost.samples = fetched.series, fetched.samples
        self._require_complete(prepared, fetched)
        begun = clock.monotonic()
        try:
            result, budget = await evaluate_rest(
                prepared,
                fetched,
                scope,
                max_samples=self._settings.max_samples,
                workers=self._workers,
                clock=clock,
            )
        finally:
            cost.front_s, cost.bytes = clock.monotonic() - begun, request.memory.held
        cost.peak_samples = budget.peak
        return result, fetched.warnings

    async def _prepared(self, text: str, times: QueryTimes) -> Prepared:
        try:
            if len(text) <= _MAX_INLINE_QUERY:
                return prepare(text, times, parser=self._parsed.parse)
            return await self._workers.run(lambda: prepare(text, times, parser=self._parsed.parse))
        except ParseError as error:
            raise bad_query(error) from error

    def _require_complete(self, prepared: Prepared, fetched: Fetched) -> None:
        """Raises `PartialAnswer` if the answer may lack series and a warning is not sufficient."""
        if not fetched.warnings:
            return
        if uses_absent(prepared.rest):
            why = "absent() and absent_over_time() need the series of all partitions"
        elif self._settings.partial == "refuse":
            why = 'query.partial is "refuse"'
        else:
            return
        if set(fetched.warnings) <= set(self._queries.unserved()):
            # The settings exclude these partitions, so waiting does not help.
            remedy = (
                "The missing partitions are not in this node's node.shards. Query a node that serves all of them, or a "
                "Prometheus that reads from all nodes"
            )
        else:
            remedy = "Try again when all shards answer; the status page shows their state"
        raise PartialAnswer(f"the answer may be partial: {'; '.join(fetched.warnings)}", remedy=f"{why}. {remedy}")

    def _lookback(self, given: Parameters) -> int:
        lookback = given.duration("lookback_delta", self._settings.lookback.milliseconds)
        if lookback <= 0:
            raise BadParameter('the parameter "lookback_delta" must be positive')
        return lookback


def _limited(result: Result, given: Parameters) -> tuple[Points | None, tuple[str, ...]]:
    """At most as many series as the client's limit, and a warning if there are more."""
    if result.points is None:
        return None, ()
    points = _columns(result.points)
    limited = points.first(given.limit(len(points)))
    if len(limited) == len(points):
        return points, ()
    return limited, (f"results truncated due to limit: there are {len(points)} series",)


def _columns(points: ResultPoints) -> Points:
    return Points(points.keys, points.first_point, points.time, points.value.view(np.uint64))


def _data(result: Result, points: Points | None, cost: QueryCost | None) -> Iterator[bytes]:
    yield b'{"resultType":"' + result.kind.value.encode() + b'","result":'
    yield from _result(result, points)
    if cost is not None:
        yield b',"stats":' + orjson.dumps(cost.to_json())
    yield b"}"


def _result(result: Result, points: Points | None) -> Iterable[bytes]:
    if points is not None:
        return vector_json(points, result.time) if result.kind is ValueType.VECTOR else matrix_json(points)
    if result.kind is ValueType.STRING:
        return string_json(result.time, result.text)
    return scalar_json(result.time, result.number)
