"""A path with a quick side that answers as a test says, and connections whose bytes the test sends itself."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from strandline.node.http.connections import begun_of
from strandline.node.http.quick_handlers import UnderWay
from strandline.node.http.routes import Access, Route
from strandline.node.http.whole import Whole
from strandline.node.http.whole_requests import WholeRequest
from support.http_servers import Served


class Waiting:
    """An answer that comes when the test says so."""

    def __init__(self) -> None:
        self.whole: Whole | None = Whole(b"late", is_compressed=False)
        self.call: Callable[[], None] = lambda: None
        self.waits, self.abandoned = asyncio.Event(), asyncio.Event()

    def when_here(self, call: Callable[[], None]) -> None:
        self.call = call
        self.waits.set()

    def take(self) -> Whole | None:
        return self.whole

    def abandon(self) -> None:
        self.abandoned.set()


@dataclass
class Site:
    """A path with a quick side, which answers as the test says, and one without."""

    answer: Callable[[WholeRequest, str], Whole | UnderWay | None] = lambda *_: Whole(b"quick", is_compressed=False)
    quick: list[WholeRequest] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    ordinary: list[object] = field(default_factory=list)

    def routes(self) -> tuple[Route, ...]:
        async def handler(request: web.Request) -> web.StreamResponse:
            begun = begun_of(request)
            self.ordinary.append(begun.answer if begun is not None else None)
            return Whole(b"ordinary", is_compressed=False).response()

        def quick(request: WholeRequest, name: str) -> Whole | UnderWay | None:
            self.quick.append(request)
            self.names.append(name)
            return self.answer(request, name)

        return (
            Route(("GET", "POST"), "/quick", handler, Access.READ, quick),
            Route(("GET",), "/named/{name}/x", handler, Access.READ, quick),
            Route(("GET",), "/slow", handler, Access.READ),
        )


def request(path: str = "/quick", *fields: str) -> bytes:
    lines = ("Host: localhost", *fields)
    return f"GET {path} HTTP/1.1\r\n{''.join(line + chr(13) + chr(10) for line in lines)}\r\n".encode()


class Wire:
    """A connection whose bytes a test sends and reads itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def body(self) -> bytes:
        """The body of the next answer."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        (length,) = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        return await self.reader.readexactly(int(length.split(b":")[1]))


async def wire_to(serving: Served, tls: ssl.SSLContext | None = None) -> Wire:
    return Wire(*await asyncio.open_connection(serving.bound.host, serving.bound.port, ssl=tls))


async def under_way(site: Site, serving: Served) -> tuple[Wire, Waiting]:
    """A connection whose request is worked on at the quick side, until the test says that the answer has come."""
    late = Waiting()
    site.answer = lambda *_: late
    wire = await wire_to(serving)
    wire.writer.write(request("/quick"))
    await late.waits.wait()
    return wire, late
