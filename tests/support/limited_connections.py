"""A server with limits on its connections, and clients that reach them."""

import asyncio
import re

from strandline.node.http.connection_limits import ConnectionLimits
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response
from strandline.node.http.routes import Access, Route
from support.http_servers import Served, in_loop, served

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


GET_ONCE = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


HEALTH = b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n"


POST = b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


def limits(**changes: float) -> ConnectionLimits:
    defaults = {
        "connections": 100,
        "request_timeout_s": 60,
        "min_rate": 1,
        "rate_window_s": 60,
        "check_interval_s": 0.01,
    }
    return ConnectionLimits(**(defaults | changes))  # type: ignore[arg-type]


async def hello(_request: Request) -> AnyResponse:
    return Response.text("hello")


async def body_length(request: Request) -> AnyResponse:
    return Response.text(str(len(await request.body.read())))


ROUTES = (
    Route(("GET",), "/", hello, Access.READ),
    Route(("POST",), "/body", body_length, Access.READ),
    Route(("GET",), "/-/healthy", hello, Access.OPEN),
)


def talk(sent: bytes, **changes: float) -> bytes:
    """Send these bytes, and return the server's until it closes the connection."""

    async def test() -> bytes:
        async with served(ROUTES, limits=limits(**changes)) as serving:
            return await serving.raw(sent)

    return in_loop(test())


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def connected(serving: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(serving.bound.host, serving.bound.port)


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    assert length is not None
    return head + await reader.readexactly(int(length[1]))
