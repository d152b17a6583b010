"""Clients at the quick side: that go away, send too much, take nothing; and a server that stops meanwhile."""

import asyncio
import ssl

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from strandline.clock import SystemClock
from strandline.node.http import connections
from strandline.node.http.routes import Access, Route
from strandline.node.http.whole import Whole
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.settings.http_sections import HttpSettings
from support.http_servers import in_loop, served
from support.quick_sites import Site, Waiting, request, under_way, wire_to

pytestmark = pytest.mark.unit


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize("behind", [b"", b"GET /", request("/slow")])
def test_it_is_given_up_when_the_client_goes_away(site: Site, behind: bytes) -> None:
    figures = FrontFigures(SystemClock())

    async def test() -> None:
        async with served(site.routes(), counts=figures) as serving:
            wire, late = await under_way(site, serving)
            assert figures.counts().in_flight == 1
            wire.writer.write(behind)
            await wire.writer.drain()
            # The server has that when a connection that was made later is answered.
            await serving.get("/slow")
            wire.writer.close()
            await late.abandoned.wait()
            late.call()

    in_loop(test())
    assert figures.counts().in_flight == 0
    assert ("/quick", "200") not in figures.counts().requests


def test_what_comes_behind_a_request_is_not_read_without_end(site: Site) -> None:
    async def test() -> None:
        async with served(site.routes()) as serving:
            wire, late = await under_way(site, serving)
            wire.writer.write(bytes(32 << 20))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await wire.writer.drain()
            late.call()
            assert await wire.body() == b"late"
            # Zeros are no request.
            assert b" 400 " in await wire.reader.readline()
            wire.writer.transport.abort()

    in_loop(test())


def test_a_server_that_stops_answers_what_is_under_way(site: Site) -> None:
    async def test() -> list[bytes]:
        bodies = []
        for whole in (Whole(b"late", is_compressed=False), None):
            late = Waiting()
            late.whole = whole
            site.answer = lambda *_, late=late: late
            async with served(site.routes()) as serving:
                answering = asyncio.create_task(serving.get("/quick"))
                await late.waits.wait()
                stopping = asyncio.create_task(serving.server.stop(20.0))
                asyncio.get_running_loop().call_later(0.05, late.call)
                bodies.append((await answering).body)
                await stopping
        return bodies

    assert in_loop(test()) == [b"late", b"ordinary"]


def test_a_request_that_is_under_way_for_long_does_not_make_its_connection_idle(site: Site) -> None:
    async def test() -> bytes:
        async with served(site.routes(), request_timeout_s=0.05) as serving:
            wire, late = await under_way(site, serving)
            asyncio.get_running_loop().call_later(0.3, late.call)
            body = await wire.body()
            # Now it is idle, and is closed.
            assert await wire.reader.read() == b""
            wire.writer.close()
            return body

    assert in_loop(test()) == b"late"


LARGE = 64 << 20


def with_large_answers(site: Site) -> tuple[Route, ...]:
    """One at the quick side, and one that is aiohttp's."""
    whole = Whole(bytes(LARGE), is_compressed=False)
    site.answer = lambda *_: whole

    async def large(_request: web.Request) -> web.StreamResponse:
        return whole.response()

    return (*site.routes(), Route(("GET",), "/large", large, Access.READ))


@pytest.mark.parametrize("path", ["/quick", "/large"])
@pytest.mark.parametrize("timeout_s", [0.02, 60.0])
@pytest.mark.parametrize("behind", [b"", request("/slow")])
def test_a_client_that_takes_nothing_is_cut_off(
    site: Site, monkeypatch: pytest.MonkeyPatch, path: str, timeout_s: float, behind: bytes
) -> None:
    """On either side; also if its connection counts as idle by then, or if it asks for more."""
    monkeypatch.setattr(connections, "_TAKEN_WITHIN_S", 0.1)
    routes = with_large_answers(site)

    async def test() -> None:
        async with served(routes, request_timeout_s=timeout_s) as serving:
            wire = await wire_to(serving)
            wire.writer.write(request(path))
            await wire.reader.readuntil(b"\r\n\r\n")
            # The reader takes as much as it likes to, and then nothing until the server has given up.
            with capture_logs() as logs:
                wire.writer.write(behind)
                while not any("takes nothing" in line["event"] for line in logs):
                    await asyncio.sleep(0.01)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await wire.reader.readexactly(LARGE)
            wire.writer.transport.abort()

    in_loop(test())


@pytest.mark.parametrize("path", ["/quick", "/large"])
def test_over_tls_one_that_takes_nothing_is_cut_off_when_its_connection_counts_as_idle(
    site: Site, monkeypatch: pytest.MonkeyPatch, encrypted: HttpSettings, trusting: ssl.SSLContext, path: str
) -> None:
    """asyncio does not tell what TLS has passed on to the socket, and ends such a connection by a limit of its own."""
    monkeypatch.setattr(asyncio.constants, "SSL_SHUTDOWN_TIMEOUT", 0.1)
    routes = with_large_answers(site)

    async def test() -> None:
        async with served(routes, encrypted, request_timeout_s=0.05) as serving:
            wire = await wire_to(serving, trusting)
            wire.writer.write(request(path))
            await wire.reader.readuntil(b"\r\n\r\n")
            aiohttp_server = serving.server._runner.server
            assert aiohttp_server is not None
            while aiohttp_server.connections:
                await asyncio.sleep(0.01)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await wire.reader.readexactly(LARGE)
            wire.writer.transport.abort()

    in_loop(test())


def test_a_client_that_takes_it_slowly_gets_all_of_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_TAKEN_WITHIN_S", 0.5)
    size = 24 << 20
    site.answer = lambda *_: Whole(bytes(size), is_compressed=False)

    async def test() -> int:
        async with served(site.routes()) as serving:
            wire = await wire_to(serving)
            wire.writer.write(request("/quick"))
            await wire.reader.readuntil(b"\r\n\r\n")
            taken = 0
            while taken < size:
                taken += len(await wire.reader.read(1 << 18))
                await asyncio.sleep(0.005)
            wire.writer.close()
            return taken

    assert in_loop(test()) == size
