"""A server whose look-ups may be passed on to shards, which answer as a test says."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from strandline.clock import ManualClock
from strandline.node.http.api.express_lookups import ExpressLookups
from strandline.node.http.quick_handlers import UnderWay
from strandline.node.http.routes import Access, Route
from strandline.node.http.whole import Whole
from strandline.node.http.whole_requests import WholeRequest
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.metrics.observing import observing
from strandline.node.query.asks import SERIES
from strandline.node.query.frames import PLAIN_MAGIC, PREFIX
from strandline.node.query.link_client import LinkClient
from strandline.node.query.node_queries import ShardQueries
from strandline.node.query.plain_lookups import lookups_path
from strandline.node.settings.http_sections import HttpSettings
from strandline.node.supervisor.standing import ProcessState, ShardStanding
from support.http_servers import Served, in_loop, served
from support.lookup_questions import LookupQuestion
from support.quick_sites import Wire, request, wire_to

PATH, NAMES_PATH, VALUES_PATH = "/api/v1/series", "/api/v1/labels", "/api/v1/label/{name}/values"
UP = f"{PATH}?match[]=up"
QUESTION = LookupQuestion(SERIES, [[("__name__", "up")]])
ORDINARY = b"ordinary"
Says = Callable[[asyncio.StreamWriter], Awaitable[None]]


def found(text: bytes = b'["found"]', series: int = 3) -> bytes:
    return PREFIX.pack(PLAIN_MAGIC, 0, 4 + len(text)) + series.to_bytes(4, "little") + text


def body_of(text: bytes) -> bytes:
    return b'{"status":"success","data":%s}' % text


FOUND = body_of(b'["found"]')


def saying(*pieces: bytes, then_hang_up: bool = False) -> Says:
    async def says(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            # The other side has read it by now.
            for _ in range(3):
                await asyncio.sleep(0)
        if then_hang_up:
            writer.close()

    return says


class Held:
    """An answer that comes when the test says so."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._writers: list[asyncio.StreamWriter] = []

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)

    def let_go(self) -> None:
        while self._writers:
            self._writers.pop().write(self._answer)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def is_listening(serving: Served) -> bool:
    try:
        wire = await wire_to(serving)
    except ConnectionError:
        return False
    wire.writer.close()
    return True


class Shard:
    """A process that answers look-ups as the test says."""

    def __init__(self) -> None:
        self.says: Says = saying(found())
        self.asked: list[LookupQuestion] = []
        self.gone = asyncio.Event()
        self._serving: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    @asynccontextmanager
    async def listening(self, link: Path) -> AsyncIterator[None]:
        server = await asyncio.start_unix_server(self._serve, lookups_path(link))
        try:
            yield
        finally:
            server.close()
            for writer in self._serving:
                writer.close()
            await asyncio.gather(*(task for task in self._serving.values() if task is not None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving[writer] = asyncio.current_task()
        try:
            while True:
                prefix = await reader.readexactly(PREFIX.size)
                body = await reader.readexactly(PREFIX.unpack(prefix)[2])
                self.asked.append(LookupQuestion.of(prefix + body))
                await self.says(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone.set()
        finally:
            writer.close()


@dataclass
class Standing:
    """What the supervisor says of the shards."""

    told: tuple[ShardStanding, ...]

    def shards(self) -> tuple[ShardStanding, ...]:
        return self.told


@dataclass
class Site:
    """A server whose look-ups may be answered in three ways, each with something else."""

    shards: list[Shard]
    clients: Mapping[int, LinkClient]
    standing: Standing
    clock: ManualClock = field(default_factory=ManualClock)
    quick: Whole | UnderWay | None = None
    ordinary: list[str] = field(default_factory=list)
    wires: list[Wire] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shard, self.figures = self.shards[0], FrontFigures(self.clock)
        self.express = ExpressLookups(ShardQueries(lambda: self.clients, self.standing), self.figures, self.clock, 1000)
        self.serving: Served

    def routes(self, *, quick: bool = True) -> tuple[Route, ...]:
        async def handler(request: web.Request) -> web.StreamResponse:
            self.ordinary.append(request.method)
            return Whole(ORDINARY + request.query.get("limit", "").encode(), is_compressed=False).response()

        def quickly(request: WholeRequest, _name: str) -> Whole | UnderWay | None:
            return self.quick if "x=1" not in request.query else None

        paths = (PATH, NAMES_PATH, VALUES_PATH)
        return tuple(Route(("GET", "POST"), path, handler, Access.READ, quickly if quick else None) for path in paths)

    async def wire(self, *fields: str, tls: ssl.SSLContext | None = None) -> Wire:
        """A connection that has asked before, which was answered the ordinary way."""
        wire = await wire_to(self.serving, tls)
        self.wires.append(wire)
        quick, self.quick = self.quick, None
        assert await ask(wire, UP, *fields) == ORDINARY
        self.quick = quick
        self.ordinary.clear()
        return wire

    async def all_is_here(self) -> None:
        """The server has what was sent when a connection that was made later is answered."""
        assert (await self.serving.get(f"{UP}&x=1")).body == ORDINARY
        self.ordinary.pop()

    def counted(self) -> tuple[int, int, int, int]:
        """Requests for series that were answered, questions, the series of these, and what is in flight."""
        counts = self.figures.counts()
        assert set(counts.requests) <= {(PATH, "200")}
        assert set(counts.queries) <= {(SERIES, "answered")}
        return sum(counts.requests.values()), sum(counts.queries.values()), counts.series, counts.in_flight


async def ask(wire: Wire, path: str = UP, *fields: str) -> bytes:
    wire.writer.write(request(path, *fields))
    return await wire.body()


def at_site(
    folder: Path,
    test: Callable[[Site], Awaitable[None]],
    *,
    shards: int = 1,
    settings: HttpSettings | None = None,
    quick: bool = True,
) -> None:
    """Do a test with a server, and so many shards that answer."""

    async def run() -> None:
        links = {shard: folder / str(shard) for shard in range(shards)}
        clients = {shard: LinkClient(link, shard, ManualClock()) for shard, link in links.items()}
        running = Standing(tuple(ShardStanding(shard, ProcessState.RUNNING) for shard in links))
        site = Site([Shard() for _ in links], clients, running)
        options: dict[str, Any] = {"express": site.express, "counts": site.figures, "clock": site.clock}
        async with AsyncExitStack() as stack:
            for shard, link in zip(site.shards, links.values(), strict=True):
                await stack.enter_async_context(shard.listening(link))
                stack.callback(clients[site.shards.index(shard)].close)
            site.serving = await stack.enter_async_context(
                served(
                    site.routes(quick=quick), settings, middlewares=(observing(site.figures, site.clock),), **options
                )
            )
            await test(site)
            for wire in site.wires:
                wire.writer.close()

    in_loop(run())
