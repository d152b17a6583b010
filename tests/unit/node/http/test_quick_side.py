"""Requests that are answered without aiohttp, between those that it answers on the same connection."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from strandline.clock import SystemClock
from strandline.node.http import connections
from strandline.node.http.connections import begun_of
from strandline.node.http.errors import BadParameter
from strandline.node.http.quick_handlers import UnderWay
from strandline.node.http.routes import Access, Route
from strandline.node.http.whole import Whole
from strandline.node.http.whole_requests import WholeRequest
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.metrics.observing import observing
from strandline.node.settings.http_sections import HttpSettings
from support.certificates import make_certificates
from support.http_servers import Served, in_loop, secret_file, served

pytestmark = pytest.mark.unit

TOKEN = "read-token-0123456789"


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


@pytest.fixture
def site() -> Site:
    return Site()


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


async def wire_to(serving: Served) -> Wire:
    return Wire(*await asyncio.open_connection(serving.bound.host, serving.bound.port))


@pytest.mark.parametrize("compressed", [False, True])
def test_an_answer_has_the_header_fields_that_aiohttp_gives_it(site: Site, compressed: bool) -> None:
    whole = Whole(b"{}", is_compressed=compressed)
    site.answer = lambda *_: whole

    async def through_aiohttp(_request: web.Request) -> web.StreamResponse:
        return whole.response()

    async def test() -> None:
        ordinary = Route(("GET",), "/ordinary", through_aiohttp, Access.READ)
        async with served((*site.routes(), ordinary)) as serving:
            heads = []
            for path in ("/quick", "/ordinary"):
                wire = await wire_to(serving)
                wire.writer.write(request(path))
                head = await wire.reader.readuntil(b"\r\n\r\n")
                wire.writer.close()
                first, *fields = head.decode().rstrip("\r\n").split("\r\n")
                dated = [one.partition(":")[0] if one.startswith("Date") else one for one in fields]
                heads.append((first, sorted(dated)))
            assert len(site.quick) == 1
            assert heads[0] == heads[1]

    in_loop(test())


def test_it_gets_what_was_asked(site: Site) -> None:
    async def test() -> None:
        async with served(site.routes()) as serving:
            assert (await serving.get("/quick?a=b")).body == b"quick"
            assert (await serving.post("/quick", data={"a": "c"})).body == b"quick"
            assert (await serving.get("/named/job/x")).body == b"quick"

    in_loop(test())
    got, posted, _ = site.quick
    assert (got.method, got.path, got.query) == ("GET", "/quick", "a=b")
    assert (posted.method, posted.body) == ("POST", b"a=c")
    assert site.names == ["", "", "job"]
    assert site.ordinary == []


@pytest.mark.parametrize("path", ["/named/a%20b/x", "/named//x", "/named/a/b/x", "/slow", "/quick/", "/none"])
def test_paths_that_mean_something_else_are_not_taken(site: Site, path: str) -> None:
    async def test() -> None:
        async with served(site.routes()) as serving:
            await serving.get(path)

    in_loop(test())
    assert site.quick == []


def test_what_it_declines_or_refuses_comes_to_the_ordinary_handler(site: Site) -> None:
    def refuse(*_: object) -> None:
        raise BadParameter("no")

    async def test() -> None:
        async with served(site.routes()) as serving:
            for site.answer in (lambda *_: None, refuse):
                assert (await serving.get("/quick")).body == b"ordinary"
            async with serving.client.head("/quick") as response:
                assert response.status == 200

    in_loop(test())
    assert site.ordinary == [None, None, None]


def test_a_fault_of_its_own_is_logged_and_the_ordinary_handler_answers(site: Site) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    async def test() -> bytes:
        site.answer = fail
        async with served(site.routes()) as serving:
            return (await serving.get("/quick")).body

    with capture_logs() as logs:
        assert in_loop(test()) == b"ordinary"
    assert [line["path"] for line in logs if line["log_level"] == "error"] == ["/quick"]


def test_both_sides_take_turns_on_one_connection(site: Site) -> None:
    async def test() -> list[bytes]:
        async with served(site.routes()) as serving:
            wire = await wire_to(serving)
            bodies = []
            for path in ("/quick", "/slow", "/quick", "/slow", "/slow", "/quick"):
                wire.writer.write(request(path))
                bodies.append(await wire.body())
            wire.writer.close()
            return bodies

    assert in_loop(test()) == [b"quick", b"ordinary", b"quick", b"ordinary", b"ordinary", b"quick"]


def test_requests_that_come_together_are_answered_in_their_order(site: Site) -> None:
    async def test() -> list[bytes]:
        async with served(site.routes()) as serving:
            wire = await wire_to(serving)
            wire.writer.write(request("/slow") + request("/quick") + request("/slow")[:10])
            bodies = [await wire.body(), await wire.body()]
            wire.writer.write(request("/slow")[10:])
            bodies.append(await wire.body())
            wire.writer.write(request("/quick"))
            bodies.append(await wire.body())
            wire.writer.close()
            return bodies

    # Once requests did not come one by one, aiohttp answers all of the connection's.
    assert in_loop(test()) == [b"ordinary"] * 4


def test_a_request_behind_one_that_is_under_way_waits_for_it(site: Site) -> None:
    async def test() -> list[bytes]:
        late = Waiting()
        site.answer = lambda *_: late
        async with served(site.routes()) as serving:
            wire = await wire_to(serving)
            wire.writer.write(request("/quick"))
            await late.waits.wait()
            wire.writer.write(request("/slow"))
            await wire.writer.drain()
            # The server has the second one when a connection that was made later is answered.
            assert (await serving.get("/slow")).body == b"ordinary"
            assert len(site.ordinary) == 1
            late.call()
            bodies = [await wire.body(), await wire.body()]
            wire.writer.close()
            return bodies

    assert in_loop(test()) == [b"late", b"ordinary"]


def test_what_can_t_be_ended_goes_on_at_the_ordinary_handler_and_is_given_up_behind_it(site: Site) -> None:
    async def test() -> None:
        late = Waiting()
        late.whole = None
        site.answer = lambda *_: late
        async with served(site.routes()) as serving:
            answering = asyncio.create_task(serving.get("/quick"))
            await late.waits.wait()
            assert not late.abandoned.is_set()
            late.call()
            assert (await answering).body == b"ordinary"
            assert site.ordinary == [late]
            await late.abandoned.wait()
            # The next one has nothing to do with it.
            assert (await serving.get("/slow")).body == b"ordinary"
            assert site.ordinary == [late, None]

    in_loop(test())


@pytest.mark.parametrize("behind", [b"", b"GET /", request("/slow")])
def test_it_is_given_up_when_the_client_goes_away(site: Site, behind: bytes) -> None:
    figures = FrontFigures(SystemClock())

    async def test() -> None:
        late = Waiting()
        site.answer = lambda *_: late
        async with served(site.routes(), counts=figures) as serving:
            wire = await wire_to(serving)
            wire.writer.write(request("/quick"))
            await late.waits.wait()
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
        late = Waiting()
        site.answer = lambda *_: late
        async with served(site.routes()) as serving:
            wire = await wire_to(serving)
            wire.writer.write(request("/quick"))
            await late.waits.wait()
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
        late = Waiting()
        site.answer = lambda *_: late
        async with served(site.routes(), request_timeout_s=0.05) as serving:
            wire = await wire_to(serving)
            wire.writer.write(request("/quick"))
            await late.waits.wait()
            asyncio.get_running_loop().call_later(0.3, late.call)
            body = await wire.body()
            # Now it is idle, and is closed.
            assert await wire.reader.read() == b""
            wire.writer.close()
            return body

    assert in_loop(test()) == b"late"


def test_tokens_are_asked_for_on_each_connection_and_after_each_reload(site: Site, tmp_path: Path) -> None:
    first = HttpSettings(read_token_file=secret_file(tmp_path / "first", TOKEN))
    second = HttpSettings(read_token_file=secret_file(tmp_path / "second", "another-token-0123456"))

    async def test() -> list[int]:
        async with served(site.routes(), first) as serving:
            allowed = {"Authorization": f"Bearer {TOKEN}"}
            statuses = [(await serving.get("/quick", headers=allowed)).status for _ in range(2)]
            assert len(site.quick) == 2
            statuses.append((await serving.get("/quick")).status)
            serving.server.reload(second)
            statuses.append((await serving.get("/quick", headers=allowed)).status)
            assert len(site.quick) == 2
            return statuses

    assert in_loop(test()) == [200, 200, 401, 401]


def test_hosts_of_others_are_refused_as_ever(site: Site) -> None:
    async def test() -> int:
        async with served(site.routes()) as serving:
            return (await serving.get("/quick", headers={"Host": "evil.example"})).status

    assert in_loop(test()) == 403
    assert site.quick == []


def test_forms_of_other_sites_are_refused_though_the_same_fields_may_read(site: Site) -> None:
    async def test() -> list[int]:
        async with served(site.routes()) as serving:
            fields = {"Origin": "http://evil.example", "Content-Type": "application/x-www-form-urlencoded"}
            return [
                (await serving.get("/quick", headers=fields)).status,
                (await serving.post("/quick", headers=fields)).status,
            ]

    assert in_loop(test()) == [200, 403]


def test_an_origin_that_is_none_is_another_site(site: Site) -> None:
    async def test() -> int:
        async with served(site.routes()) as serving:
            return (await serving.post("/quick", headers={"Origin": "http://[::1"})).status

    assert in_loop(test()) == 403


def test_requests_are_counted_once_and_from_their_beginning(site: Site) -> None:
    clock = SystemClock()
    figures = FrontFigures(clock)

    async def test() -> None:
        late = Waiting()
        late.whole = None
        options = {"counts": figures, "clock": clock, "middlewares": (observing(figures, clock),)}
        async with served(site.routes(), **options) as serving:
            await serving.get("/quick")
            await serving.get("/named/a/x")
            site.answer = lambda *_: late
            answering = asyncio.create_task(serving.get("/quick"))
            await late.waits.wait()
            asyncio.get_running_loop().call_later(0.1, late.call)
            await answering

    in_loop(test())
    counts = figures.counts()
    assert counts.in_flight == 0
    assert counts.requests == {("/quick", "200"): 2, ("/named/{name}/x", "200"): 1}
    assert counts.seconds["/quick"].total >= 0.1


def test_queries_are_not_in_the_access_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with served(site.routes()) as serving:
            await serving.get("/quick?match=very-secret")

    with caplog.at_level(logging.DEBUG, connections.__name__), capture_logs() as logs:
        in_loop(test())
    (line,) = [line for line in logs if line["event"] == "request"]
    assert (line["path"], line["status"], line["bytes"], line["remote"]) == ("/quick", 200, 5, "127.0.0.1")
    assert "secret" not in str(line)


def test_it_answers_over_tls_as_well(site: Site, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path / "ca")
    folder = certificates.ca.parent
    encrypted = HttpSettings(tls_certificate_file=folder / "server.pem", tls_key_file=folder / "server.key")
    trusting = ssl.create_default_context(cafile=str(certificates.ca))

    async def test() -> list[bytes]:
        async with served(site.routes(), encrypted) as serving:
            late = Waiting()
            # The first one may come before aiohttp waits for it.
            await serving.get("/slow", ssl=trusting)
            bodies = [(await serving.get(path, ssl=trusting)).body for path in ("/quick", "/slow", "/quick")]
            site.answer = lambda *_: late
            answering = asyncio.create_task(serving.get("/quick", ssl=trusting))
            await late.waits.wait()
            late.call()
            return [*bodies, (await answering).body]

    assert in_loop(test()) == [b"quick", b"ordinary", b"quick", b"late"]
    assert len(site.quick) == 3


@pytest.mark.parametrize("path", ["/quick", "/large"])
@pytest.mark.parametrize("timeout_s", [0.02, 60.0])
@pytest.mark.parametrize("behind", [b"", request("/slow")])
def test_a_client_that_takes_nothing_is_cut_off(
    site: Site, monkeypatch: pytest.MonkeyPatch, path: str, timeout_s: float, behind: bytes
) -> None:
    """On either side; also if its connection counts as idle by then, or if it asks for more."""
    monkeypatch.setattr(connections, "_TAKEN_WITHIN_S", 0.1)
    whole = Whole(bytes(64 << 20), is_compressed=False)
    site.answer = lambda *_: whole

    async def large(_request: web.Request) -> web.StreamResponse:
        return whole.response()

    async def test() -> None:
        routes = (*site.routes(), Route(("GET",), "/large", large, Access.READ))
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
                await wire.reader.readexactly(64 << 20)
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
