"""`/api/v1/query` and `/api/v1/query_range`, for selectors and constants."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from strandline.clock import Clock
from strandline.index.key_bytes import KeyBytes
from strandline.node.http.api.evaluation import PointsPlan, Steps, samples_of_range, samples_wanted
from strandline.node.http.api.expressions import Constant, Selection, parse_expression
from strandline.node.http.api.names import scope_of
from strandline.node.http.api.pieces import Points, matrix_json, scalar_json, vector_json
from strandline.node.http.api.sending import Answer, respond
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import Parameters, parameters_of
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse
from strandline.node.http.routes import Access, Route
from strandline.node.query.answers import SamplesAnswer
from strandline.node.query.asks import SamplesAsk
from strandline.node.query.queries import NodeQueries
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers

Result = TypeVar("Result")
# So many samples are evaluated in the event loop; of more, a worker thread makes the answer.
_FEW_SAMPLES = 2000
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

    async def query(self, request: Request) -> AnyResponse:
        """At one moment, now unless `time` says another."""
        given = await parameters_of(request)
        expression = parse_expression(given.required("query"))
        moment = given.time("time", self.clock.now_ms())
        if isinstance(expression, Constant):
            return await self._sent(request, "scalar", scalar_json(moment, expression.value))
        steps = Steps.at(moment)
        if expression.span is None:
            points, warnings = await self._points(request, expression, steps, given)
            return await self._sent(request, "vector", vector_json(points, moment), points.nbytes, warnings)
        samples = await self._samples(request, expression, steps, self._lookback(given), given)
        points, warnings = _limited(await self._done(samples, lambda: samples_of_range(samples)), given)
        return await self._sent(request, "matrix", matrix_json(points), points.nbytes, samples.warnings + warnings)

    async def query_range(self, request: Request) -> AnyResponse:
        """At every step from `start` to `end`."""
        given = await parameters_of(request)
        expression, steps = parse_expression(given.required("query")), self._steps(given)
        if isinstance(expression, Constant):
            points = _constant(steps, expression.value)
            return await self._sent(request, "matrix", matrix_json(points), points.nbytes)
        if expression.span is not None:
            raise BadParameter(
                "a range query wants one value at each step, and a selector with a range has many",
                remedy="Leave the [...] out, or ask /api/v1/query",
            )
        points, warnings = await self._points(request, expression, steps, given)
        return await self._sent(request, "matrix", matrix_json(points), points.nbytes, warnings)

    async def _points(
        self, request: Request, selection: Selection, steps: Steps, given: Parameters
    ) -> tuple[Points, tuple[str, ...]]:
        lookback, memory = self._lookback(given), request.memory
        samples = await self._samples(request, selection, steps, lookback, given)
        plan = await self._done(samples, lambda: PointsPlan(selection, steps, lookback, samples))
        plan.check(self.settings.max_samples)
        memory.grow(plan.nbytes)
        points = await self._done(samples, plan.make)
        # From here on the samples are not needed, but for the keys.
        memory.shrink(max(0, memory.held - points.nbytes))
        points, warnings = _limited(points, given)
        return points, samples.warnings + warnings

    async def _done(self, samples: SamplesAnswer, work: Callable[[], Result]) -> Result:
        return work() if len(samples.time) <= _FEW_SAMPLES else await self.workers.run(work)

    async def _samples(
        self, request: Request, selection: Selection, steps: Steps, lookback: int, given: Parameters
    ) -> SamplesAnswer:
        within = samples_wanted(selection, steps, lookback)
        ask = SamplesAsk(selection.selector, within, self.settings.max_series, self.settings.max_samples)
        return await self.queries.samples(ask, scope_of(request, given, self.settings))

    async def _sent(
        self,
        request: Request,
        kind: str,
        pieces: Iterable[bytes],
        size: int = 0,
        warnings: tuple[str, ...] = (),
    ) -> AnyResponse:
        return await respond(request, self.workers, Answer(_result(kind, pieces), size, warnings))

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
