"""Requests that are answered without aiohttp, between those that it answers on the same connection."""

import asyncio
import logging
import ssl
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from strandline.clock import SystemClock
from strandline.node.http import connections
from strandline.node.http.errors import BadParameter
from strandline.node.http.routes import Access, Route
from strandline.node.http.whole import Whole
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.metrics.observing import observing
from strandline.node.settings.http_sections import HttpSettings
from support.http_servers import in_loop, secret_file, served
from support.quick_sites import Site, Waiting, request, under_way, wire_to

pytestmark = pytest.mark.unit

TOKEN = "read-token-0123456789"


@pytest.fixture
def site() -> Site:
    return Site()


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
        async with served(site.routes()) as serving:
            wire, late = await under_way(site, serving)
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


def test_it_answers_over_tls_as_well(site: Site, encrypted: HttpSettings, trusting: ssl.SSLContext) -> None:
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
