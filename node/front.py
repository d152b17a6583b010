"""The HTTP front of a node: all its routes, over the shards of its supervisor."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from prometheus_client.core import Metric as Family

from strandline.clock import Clock
from strandline.node.http.api.kernel_loading import load_kernels
from strandline.node.http.api.routes import api_routes
from strandline.node.http.errors import BadParameter, Refused
from strandline.node.http.health import health_routes
from strandline.node.http.listening import BoundAddress
from strandline.node.http.remote_read.handler import MAX_BODY, read_routes
from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.http.server import HttpServer
from strandline.node.job_watch.routes import jobs_routes
from strandline.node.job_watch.watch import JobsOpener, JobsWatch
from strandline.node.masking import SecretMask
from strandline.node.metrics.counted_queries import CountedQueries
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.metrics.node_families import node_families
from strandline.node.metrics.readiness_watch import Opener, ReadinessWatch
from strandline.node.metrics.routes import metrics_routes, readiness_routes
from strandline.node.page.api import page_routes
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.query.shard_link import ShardLink
from strandline.node.query.shard_queries import ShardQueries
from strandline.node.settings.sections import Settings
from strandline.node.shard.assembling import store_name
from strandline.node.shard.heap import trim_heap
from strandline.node.status.processes import NodeStatus
from strandline.node.supervisor.node_state import NodeState
from strandline.node.supervisor.reloading import Reload, TakesEffect
from strandline.node.supervisor.supervisor import NoSuchShard
from strandline.node.workers import Workers

_STOP_S = 5.0
_RETURN_MEMORY_DELAY_S = 1.0


class FrontSupervisor(NodeStatus, Protocol):
    """What the front needs of the supervisor."""

    def state(self) -> NodeState:
        """The last state of the node."""
        ...

    def state_age_s(self) -> float:
        """The age of the last state."""
        ...

    def clients(self) -> Mapping[int, ShardLink]:
        """The links to the shards' processes, by number."""
        ...

    async def restart_shard(self, shard: int) -> None:
        """Restart a shard's process. Raises if the node does not serve it."""
        ...


def _return_memory_later() -> None:
    """Return the memory of large answers to the system, after a delay in which references to them end."""
    loop = asyncio.get_running_loop()
    loop.call_later(_RETURN_MEMORY_DELAY_S, lambda: loop.run_in_executor(None, trim_heap))


class NodeFront:
    """The HTTP front of a node. For one event loop."""

    def __init__(
        self,
        supervisor: FrontSupervisor,
        settings: Settings,
        opener: Opener,
        jobs_opener: JobsOpener,
        *,
        workers: Workers,
        clock: Clock,
        mask: SecretMask,
        listener: socket.socket | None = None,
    ) -> None:
        """`opener` opens the dataset's store and topic, to determine ready hours, and `jobs_opener` its bulk jobs.
        Without a `listener`, the front binds the address itself.
        """
        self._memory = AnswerMemory(settings.query.answer_memory.bytes, _return_memory_later)
        self.figures = FrontFigures(clock, self._memory)
        self.reload_node: Callable[[], Awaitable[Reload]] | None = None
        """Called by the admin verb for a reload."""
        self._supervisor, self._settings, self._clock, self._mask = supervisor, settings, clock, mask
        self._listener, self._workers = listener, workers
        self._shards = ShardQueries(supervisor.clients, supervisor, workers, concurrency=settings.query.concurrency)
        self._queries = CountedQueries(self._shards, self.figures)
        self._watch = ReadinessWatch(opener, clock)
        self._jobs = JobsWatch(jobs_opener, store_name(settings), clock)
        self._server: HttpServer | None = None
        self._loading: asyncio.Future[None] | None = None

    @property
    def has_kernels(self) -> bool:
        """Whether all kernels are compiled, so that no query waits for one."""
        return self._loading is not None and self._loading.done()

    async def start(self) -> None:
        """Listen. Raises `CannotListen`."""
        self._server = HttpServer(
            self._routes(),
            self._settings.http,
            self._settings.http.node_address,
            max_body=MAX_BODY,
            mask=self._mask,
            observer=self.figures,
            clock=self._clock,
            memory=self._memory,
        )
        self.bound: BoundAddress = await self._server.start(self._listener)
        self._watch.start()
        self._jobs.start()
        # After it listens: health checks must not wait for the kernels.
        self._loading = asyncio.get_running_loop().run_in_executor(None, load_kernels)

    async def stop(self) -> None:
        """Accept no more requests, and wait for the current ones for a short time."""
        if self._server is not None:
            await self._server.stop(_STOP_S)
        # Both may wait for a store that hangs.
        await asyncio.gather(asyncio.to_thread(self._watch.close), self._jobs.stop())

    def reload(self, settings: Settings) -> None:
        """Use the tokens and query limits of these settings from now on."""
        if self._server is None:
            return
        self._server.reload(settings.http)
        changed, self._settings = settings.query != self._settings.query, settings
        if changed:
            self._memory.limit = settings.query.answer_memory.bytes
            self._shards.reload(concurrency=settings.query.concurrency)
            self._server.replace_routes(self._routes())

    def _routes(self) -> tuple[Route, ...]:
        settings, queries, workers, clock = self._settings, self._queries, self._workers, self._clock
        return (
            *api_routes(queries, workers, settings.query, clock, started_ms=self._supervisor.started_ms()),
            *read_routes(queries, workers, settings.query, mask=self._mask),
            *health_routes(self._supervisor),
            *metrics_routes(self._collect),
            *readiness_routes(self._watch, workers),
            *jobs_routes(self._jobs, settings.dataset.name),
            *page_routes(self._supervisor, queries, workers, self._watch, settings=settings, clock=clock),
            Route(("POST",), "/-/reload", self._reload, Access.ADMIN),
            Route(("POST",), "/api/v1/strandline/shards/{shard}/restart", self._restart, Access.ADMIN),
        )

    def _collect(self) -> tuple[Family, ...]:
        state, age_s = self._supervisor.state(), self._supervisor.state_age_s()
        readiness, jobs = self._watch.figures(), self._jobs.figures()
        now, monotonic = self._clock.now_ms(), self._clock.monotonic()
        return node_families(state, age_s, self.figures, readiness, now, jobs=jobs, monotonic=monotonic)

    async def _reload(self, _request: Request) -> Response:
        """Reload the settings. Answers with what has changed, and when the changes take effect."""
        if self.reload_node is None:
            raise BadParameter("this node can't reload its settings")
        outcome = await self.reload_node()
        changed = {when.value: outcome.names(when) for when in TakesEffect if outcome.names(when)}
        return Response.success({"changed": changed})

    async def _restart(self, request: Request) -> Response:
        """Restart a shard's process, even one that is down."""
        written = request.wildcard("shard")
        if not (written.isascii() and written.isdigit() and len(written) < 7):
            raise BadParameter(f"{written[:50]!r} is not a shard number")
        try:
            await self._supervisor.restart_shard(int(written))
        except NoSuchShard as error:
            raise Refused(404, "not_found", str(error)) from error
        return Response.success({"shard": int(written)}, status=202)
