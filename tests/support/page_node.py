"""A node for the status page: the real server and handlers on loopback, over shards whose status and answers a test
sets.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import TypeVar

import uvloop

from strandline.clock import Clock, SystemClock
from strandline.node.http.api.routes import api_routes
from strandline.node.http.parameters import parameters_of_url
from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.http.server import HttpServer
from strandline.node.job_watch.routes import jobs_routes
from strandline.node.json_values import json_value
from strandline.node.offsets.hours import ReadyReport
from strandline.node.page.api import page_routes
from strandline.node.settings import Settings
from strandline.node.settings.http_sections import HttpSettings, QuerySettings
from strandline.node.workers import Workers
from strandline.recovery.periods import HOUR
from strandline.recovery.readiness import BehindPartition, Readiness, Verdict
from support.fake_queries import FakeQueries
from support.page_jobs import FakeJobs
from support.page_shards import FakeHours, PublishedStatus

Result = TypeVar("Result")


class PageNode:
    """The server, in its own thread. `api` are routes in addition to the page's, such as those of Prometheus' API."""

    def __init__(
        self, queries: FakeQueries, *, settings: HttpSettings | None = None, clock: Clock | None = None
    ) -> None:
        self.queries, self.status, self.hours = queries, PublishedStatus(), FakeHours()
        self.jobs = FakeJobs()
        self._settings, self._clock = settings or HttpSettings(), clock or SystemClock()
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="page node")
        self._address = "127.0.0.1:0"
        self.url = ""

    def __enter__(self) -> "PageNode":
        self._thread.start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self) -> None:
        """Listen, at the same address as before if there was one."""
        self.url = self._run(self._start())

    def stop(self) -> None:
        """Stop listening."""
        self._run(self._server.stop(0.2))
        self._workers.close()

    def reload(self, settings: HttpSettings) -> None:
        """Apply the tokens of these settings."""
        self._server.reload(settings)

    def _run(self, work: Coroutine[None, None, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> str:
        self._workers = Workers(4)
        self.status.started = self._clock.now_ms()
        routes = (
            *page_routes(self.status, self.queries, self._workers, self.hours, settings=Settings(), clock=self._clock),
            *jobs_routes(self.jobs, "metrics"),
            *api_routes(self.queries, self._workers, QuerySettings(), self._clock),
            Route(("GET",), "/api/v1/strandline/ready", _ready, Access.READ),
        )
        self._server = HttpServer(routes, self._settings, self._address, max_body=1 << 20)
        bound = await self._server.start()
        self._address = f"{bound.host}:{bound.port}"
        return bound.url


async def _ready(request: Request) -> Response:
    """The answer of `strandline ready` about an hour that is not ready because of partition 1."""
    behind = BehindPartition(
        1, needed_bucket=480_000, reached_bucket=479_998, missing_groups=(3, 7), behind_ms=2 * HOUR
    )
    period = parameters_of_url(request).required("period")
    readiness = Readiness(period, Verdict.NOT_READY, "", 1, 0, period, 0, 0, 0, (behind,), (), ())
    return Response.success(json_value(ReadyReport(ready=False, readiness=readiness)))
