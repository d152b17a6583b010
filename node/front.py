"""The HTTP front of a node: every path that it answers, over the shards that its supervisor keeps."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Protocol

import orjson
from aiohttp import web
from prometheus_client.core import Metric as Family

from strandline.clock import Clock
from strandline.node.http.api.express_lookups import ExpressLookups
from strandline.node.http.api.kernel_loading import load_kernels
from strandline.node.http.api.quick_lookups import QuickLookups
from strandline.node.http.api.routes import api_routes
from strandline.node.http.errors import BadParameter, Refused
from strandline.node.http.health import health_routes
from strandline.node.http.listening import BoundAddress
from strandline.node.http.remote_read.handler import MAX_BODY, read_routes
from strandline.node.http.routes import Access, Handler, Route
from strandline.node.http.server import HttpServer
from strandline.node.http.working import Workers
from strandline.node.masking import SecretMask
from strandline.node.metrics.counted_queries import CountedQueries
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.metrics.node_families import node_families
from strandline.node.metrics.observing import observing
from strandline.node.metrics.readiness_watch import Opener, ReadinessWatch
from strandline.node.metrics.routes import metrics_routes, readiness_routes
from strandline.node.page.api import page_routes
from strandline.node.query.link_client import LinkClient
from strandline.node.query.node_queries import ShardQueries
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.settings.sections import Settings
from strandline.node.supervisor.node_state import NodeState
from strandline.node.supervisor.reloading import Reload, TakesEffect
from strandline.node.supervisor.standing import WholeStanding
from strandline.node.supervisor.supervisor import NoSuchShard

_STOP_S = 5.0


class Supervised(WholeStanding, Protocol):
    """What the front needs of the supervisor."""

    def state(self) -> NodeState:
        """The node, as the supervisor last said."""
        ...

    def state_age_s(self) -> float:
        """How long ago that was."""
        ...

    def clients(self) -> Mapping[int, LinkClient]:
        """The links to the shards' processes, by number."""
        ...

    async def restart_shard(self, shard: int) -> None:
        """A new process for a shard. Raises if the node does not serve it."""
        ...


class NodeFront:
    """Answers for a node. Its methods belong to one event loop."""

    def __init__(
        self,
        supervisor: Supervised,
        settings: Settings,
        opener: Opener,
        *,
        clock: Clock,
        mask: SecretMask,
        listener: socket.socket | None = None,
    ) -> None:
        """`opener` opens the dataset's store and topic, to see which hours are ready. `listener` is served if it is
        given; otherwise the front takes its address itself.
        """
        self.figures = FrontFigures(clock)
        self.reload_node: Callable[[], Awaitable[Reload]] | None = None
        """What the admin verb for a reload calls."""
        self._supervisor, self._settings, self._clock, self._mask = supervisor, settings, clock, mask
        self._listener = listener
        shards = ShardQueries(supervisor.clients, supervisor)
        self._queries = CountedQueries(shards, self.figures)
        self._watch = ReadinessWatch(opener, clock)
        self._workers = Workers(clock, concurrency=settings.query.concurrency, timeout_s=settings.query.timeout.seconds)
        self._loading: asyncio.Future[None] | None = None
        self._quick = QuickLookups(self._queries, self._workers, settings.query.max_names, is_open=False)
        self._express = ExpressLookups(shards, self.figures, clock, settings.query.max_names, is_open=False)
        self._answering: dict[str, Handler] = {}
        self._server: HttpServer | None = None

    async def start(self) -> None:
        """Listen. Raises `CannotListen`."""
        self._server = HttpServer(
            self._routes(),
            self._settings.http,
            self._settings.http.node_address,
            max_body=MAX_BODY,
            mask=self._mask,
            middlewares=(observing(self.figures, self._clock),),
            counts=self.figures,
            clock=self._clock,
            express=self._express,
        )
        self.bound: BoundAddress = await self._server.start(self._listener)
        self._watch.start()
        # Not before it listens: a first question may wait for its kernels, a probe of the node's health may not.
        self._loading = asyncio.get_running_loop().run_in_executor(None, load_kernels)
        self._loading.add_done_callback(self._open_quick_side)

    async def stop(self) -> None:
        """Take no more requests, and give those that run a short time."""
        if self._server is not None:
            await self._server.stop(_STOP_S)
        self._workers.close()
        # It may wait for a store that hangs.
        await asyncio.to_thread(self._watch.close)

    def reload(self, settings: Settings) -> None:
        """Hold requests to these tokens, and queries to these limits, from now on."""
        if self._server is not None:
            self._server.reload(settings.http)
        if settings.query != self._settings.query:
            self._workers.reload(concurrency=settings.query.concurrency, timeout_s=settings.query.timeout.seconds)
            self._quick.max_names = self._express.max_names = settings.query.max_names
            self._answering = {route.path: route.handler for route in self._query_routes(settings.query)}
        self._settings = settings

    def _routes(self) -> tuple[Route, ...]:
        query_routes = self._query_routes(self._settings.query)
        self._answering = {route.path: route.handler for route in query_routes}
        return (
            *(replace(route, handler=self._answered_by(route.path)) for route in query_routes),
            *health_routes(self._supervisor),
            *metrics_routes(self._collect),
            *readiness_routes(self._watch, self._workers),
            *page_routes(
                self._supervisor,
                self._queries,
                self._workers,
                self._watch,
                settings=self._settings,
                clock=self._clock,
            ),
            Route(("POST",), "/-/reload", self._reload, Access.ADMIN),
            Route(("POST",), "/api/v1/strandline/shards/{shard}/restart", self._restart, Access.ADMIN),
        )

    def _query_routes(self, settings: QuerySettings) -> tuple[Route, ...]:
        return (
            *api_routes(
                self._queries,
                self._workers,
                settings,
                self._clock,
                started_ms=self.figures.counts().started_at,
                quick=self._quick,
            ),
            *read_routes(self._queries, self._workers, settings, mask=self._mask),
        )

    def _answered_by(self, path: str) -> Handler:
        """The handler of now: a reload may bring another one."""

        async def answer(request: web.Request) -> web.StreamResponse:
            return await self._answering[path](request)

        return answer

    def _open_quick_side(self, loading: "asyncio.Future[None]") -> None:
        # Whoever needs a kernel that could not be loaded says why.
        if not loading.cancelled() and loading.exception() is None:
            self._quick.is_open = self._express.is_open = True

    def _collect(self) -> tuple[Family, ...]:
        state, age_s = self._supervisor.state(), self._supervisor.state_age_s()
        return node_families(state, age_s, self.figures, self._watch.figures(), self._clock.now_ms())

    async def _reload(self, _request: web.Request) -> web.StreamResponse:
        """Read the settings again. Answers with what has changed, and when that counts."""
        if self.reload_node is None:
            raise BadParameter("this node has nothing to reload")
        outcome = await self.reload_node()
        changed = {when.value: outcome.names(when) for when in TakesEffect if outcome.names(when)}
        return _success({"changed": changed})

    async def _restart(self, request: web.Request) -> web.StreamResponse:
        """A new process for a shard, also for one that is down."""
        written = request.match_info["shard"]
        if not (written.isascii() and written.isdigit() and len(written) < 7):
            raise BadParameter(f"{written[:50]!r} is no number of a shard")
        try:
            await self._supervisor.restart_shard(int(written))
        except NoSuchShard as error:
            raise Refused(404, "not_found", str(error)) from error
        return _success({"shard": int(written)}, status=web.HTTPAccepted.status_code)


def _success(data: object, *, status: int = 200) -> web.Response:
    body = orjson.dumps({"status": "success", "data": data})
    return web.Response(status=status, body=body, content_type="application/json")
