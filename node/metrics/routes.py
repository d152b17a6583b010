"""The routes `/metrics` and `/api/v1/strandline/ready`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson
from prometheus_client.core import Metric as Family

from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import parameters_of
from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.json_values import json_value
from strandline.node.metrics.exposition import expose
from strandline.node.metrics.readiness_watch import ReadinessWatch
from strandline.node.offsets.hours import ReadyReport
from strandline.node.workers import Workers
from strandline.recovery.periods import InvalidTime, Period, parse_period

Collect = Callable[[], Sequence[Family]]


@dataclass(frozen=True, slots=True)
class _Envelope:
    status: str
    data: ReadyReport


def metrics_routes(collect: Collect) -> tuple[Route, ...]:
    """`/metrics`. `collect` is called in the event loop for each scrape and must not block."""

    async def metrics(request: Request) -> Response:
        exposition = expose(collect(), request.headers.get("Accept", ""))
        return Response(exposition.body, content_type=exposition.content_type)

    return (Route(("GET",), "/metrics", metrics, Access.READ),)


def readiness_routes(watch: ReadinessWatch, workers: Workers) -> tuple[Route, ...]:
    """`/api/v1/strandline/ready?period=2026-11-15T10`, or a day. `data` is what `strandline ready --output json`
    prints. The status is 200 whether it is ready or not, see `data.ready`; 503 if this can't be determined now.
    """

    async def ready(request: Request) -> Response:
        period = _period((await parameters_of(request)).required("period"))
        report = await workers.run(lambda: watch.check_ready(period))
        return Response(orjson.dumps(json_value(_Envelope("success", report))))

    return (Route(("GET", "POST"), "/api/v1/strandline/ready", ready, Access.READ),)


def _period(written: str) -> Period:
    try:
        return parse_period(written[:100])
    except InvalidTime as error:
        raise BadParameter(f'the parameter "period": {error.message}', remedy=error.remedy) from error
