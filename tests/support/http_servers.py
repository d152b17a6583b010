"""Real servers on loopback for tests of handlers, and a client for each."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import uvloop

from strandline.clock import Clock, SystemClock
from strandline.node.http.api.routes import api_routes
from strandline.node.http.listening import BoundAddress
from strandline.node.http.routes import Route
from strandline.node.http.server import HttpServer
from strandline.node.query.queries import NodeQueries
from strandline.node.settings.http_sections import HttpSettings, QuerySettings
from strandline.node.workers import Workers

Result = TypeVar("Result")

MAX_BODY = 100_000


@dataclass(frozen=True)
class Served:
    """A server that listens, and a client whose URLs begin at it."""

    server: HttpServer
    bound: BoundAddress
    client: aiohttp.ClientSession

    async def get(self, path: str, **parameters: Any) -> "Reply":
        """The answer to a GET."""
        async with self.client.get(path, **parameters) as response:
            return Reply(response.status, response.headers, await response.read())

    async def post(self, path: str, **parameters: Any) -> "Reply":
        """The answer to a POST."""
        async with self.client.post(path, **parameters) as response:
            return Reply(response.status, response.headers, await response.read())

    async def head(self, path: str, **parameters: Any) -> "Reply":
        """The answer to a HEAD."""
        async with self.client.head(path, **parameters) as response:
            return Reply(response.status, response.headers, await response.read())

    async def raw(self, request: bytes) -> bytes:
        """The complete answer to these bytes, until the server closes the connection."""
        reader, writer = await asyncio.open_connection(self.bound.host, self.bound.port)
        try:
            writer.write(request)
            await writer.drain()
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


@dataclass(frozen=True)
class Reply:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@asynccontextmanager
async def served(
    routes: Sequence[Route],
    settings: HttpSettings | None = None,
    *,
    address: str = "127.0.0.1:0",
    max_body: int = MAX_BODY,
    **options: Any,
) -> AsyncIterator[Served]:
    """Serve these routes at any free port."""
    server = HttpServer(routes, settings or HttpSettings(), address, max_body=max_body, **options)
    bound = await server.start()
    try:
        async with aiohttp.ClientSession(bound.url) as client:
            yield Served(server, bound, client)
    finally:
        await server.stop(1.0)


@asynccontextmanager
async def api_served(
    queries: NodeQueries,
    settings: QuerySettings | None = None,
    http: HttpSettings | None = None,
    *,
    clock: Clock | None = None,
    **options: Any,
) -> AsyncIterator[Served]:
    """Serve Prometheus' API over these queries."""
    settings, clock = settings or QuerySettings(), clock or SystemClock()
    with closing(Workers(2)) as workers:
        async with served(api_routes(queries, workers, settings, clock), http, **options) as serving:
            yield serving


def in_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a separate event loop, of the kind that the services use, for at most a minute."""

    async def bounded() -> Result:
        async with asyncio.timeout(60):
            return await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())


async def eventually(condition: Callable[[], bool], timeout: float = 20) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.005)


def secret_file(path: Path, text: str) -> Path:
    """A file with a secret, which only its owner may read."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path
