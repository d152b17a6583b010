"""`/api/v1/query` and `/api/v1/query_range`, for selectors and constants."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from aiohttp import web

from strandline.clock import Clock
from strandline.node.http.api.evaluation import Steps, points_at, samples_of_range, samples_wanted
from strandline.node.http.api.expressions import Constant, Expression, Selection, parse_expression
from strandline.node.http.api.pieces import Points, matrix_json, scalar_json, vector_json
from strandline.node.http.api.sending import Answer, send
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import Parameters, parameters_of
from strandline.node.http.routes import Access, Route
from strandline.node.http.working import Workers
from strandline.node.query.answers import KeyBytes, SamplesAnswer
from strandline.node.query.asks import SamplesAsk
from strandline.node.query.queries import Cancellation, NodeQueries
from strandline.node.settings.http_sections import QuerySettings

_NO_LABELS = KeyBytes(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.uint8))


@dataclass(frozen=True, slots=True)
class EvaluatingApi:
    """Values of series: at a moment, at many, or all of a time."""

    queries: NodeQueries
    workers: Workers
    settings: QuerySettings
    clock: Clock

    def routes(self) -> tuple[Route, ...]:
        """Prometheus' paths."""
        forms = ("GET", "POST")
        return (
            Route(forms, "/api/v1/query", self.query, Access.READ),
            Route(forms, "/api/v1/query_range", self.query_range, Access.READ),
        )

    async def query(self, request: web.Request) -> web.StreamResponse:
        """At one moment, now unless `time` says another."""
        parameters = await parameters_of(request)

        def work(cancellation: Cancellation) -> Answer:
            expression = parse_expression(parameters.required("query"))
            moment = parameters.time("time", self.clock.now_ms())
            if isinstance(expression, Constant):
                return Answer(_result("scalar", scalar_json(moment, expression.value)))
            return self._at(moment, expression, parameters, cancellation)

        return await send(request, self.workers, work, timeout_s=parameters.timeout_s())

    async def query_range(self, request: web.Request) -> web.StreamResponse:
        """At every step from `start` to `end`."""
        parameters = await parameters_of(request)

        def work(cancellation: Cancellation) -> Answer:
            expression = parse_expression(parameters.required("query"))
            return self._over(self._steps(parameters), expression, parameters, cancellation)

        return await send(request, self.workers, work, timeout_s=parameters.timeout_s())

    def _at(self, moment: int, selection: Selection, parameters: Parameters, cancellation: Cancellation) -> Answer:
        steps, lookback = Steps.at(moment), self._lookback(parameters)
        samples = self._samples(selection, steps, lookback, cancellation)
        if selection.span is None:
            points = points_at(selection, steps, lookback, samples, self.settings.max_samples)
            points, warnings = _limited(points, parameters)
            return Answer(_result("vector", vector_json(points, moment)), samples.warnings + warnings)
        points, warnings = _limited(samples_of_range(samples), parameters)
        return Answer(_result("matrix", matrix_json(points)), samples.warnings + warnings)

    def _over(self, steps: Steps, expression: Expression, parameters: Parameters, cancellation: Cancellation) -> Answer:
        if isinstance(expression, Constant):
            return Answer(_result("matrix", matrix_json(_constant(steps, expression.value))))
        if expression.span is not None:
            raise BadParameter(
                "a range query wants one value at each step, and a selector with a range has many",
                remedy="Leave the [...] out, or ask /api/v1/query",
            )
        lookback = self._lookback(parameters)
        samples = self._samples(expression, steps, lookback, cancellation)
        points = points_at(expression, steps, lookback, samples, self.settings.max_samples)
        points, warnings = _limited(points, parameters)
        return Answer(_result("matrix", matrix_json(points)), samples.warnings + warnings)

    def _samples(self, selection: Selection, steps: Steps, lookback: int, cancellation: Cancellation) -> SamplesAnswer:
        within = samples_wanted(selection, steps, lookback)
        ask = SamplesAsk(selection.selector, within, self.settings.max_series, self.settings.max_samples)
        return self.queries.samples(ask, cancellation)

    def _steps(self, parameters: Parameters) -> Steps:
        start, end, step = parameters.time("start"), parameters.time("end"), parameters.duration("step")
        if end < start:
            raise BadParameter('the parameter "end" lies before "start"', remedy="Exchange them")
        if step <= 0:
            raise BadParameter('the parameter "step" is not above zero', remedy="Give seconds, or a duration as 15s")
        # Prometheus counts the steps between the points, so that there may be one point more.
        if (end - start) // step > self.settings.max_points:
            raise BadParameter(
                f"{(end - start) // step + 1} points a series are more than the {self.settings.max_points} "
                "that a range query may have",
                remedy='Choose a longer "step" or a shorter time, or raise query.max_points',
            )
        return Steps(start, step, (end - start) // step + 1)

    def _lookback(self, parameters: Parameters) -> int:
        lookback = parameters.duration("lookback_delta", self.settings.lookback.milliseconds)
        if lookback <= 0:
            raise BadParameter('the parameter "lookback_delta" is not above zero')
        return lookback


def _limited(points: Points, parameters: Parameters) -> tuple[Points, tuple[str, ...]]:
    """At most so many series as the client wants, and a warning if those are not all."""
    limited = points.first(parameters.limit(len(points)))
    if len(limited) == len(points):
        return points, ()
    return limited, (f"results truncated due to limit: there are {len(points)} series",)


def _constant(steps: Steps, value: float) -> Points:
    time = steps.start + steps.step * np.arange(steps.count, dtype=np.int64)
    bits = np.full(steps.count, value, dtype=np.float64).view(np.uint64)
    return Points(_NO_LABELS, np.array([0, steps.count], dtype=np.int64), time, bits)


def _result(kind: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    yield b'{"resultType":"' + kind.encode() + b'","result":'
    yield from pieces
    yield b"}"
