"""The server: its own answers, and what it adds to those of handlers."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator

import aiohttp
import orjson
import pytest
from structlog.testing import capture_logs

from strandline.errors import Fatal, Retryable
from strandline.node.http.errors import BadParameter
from strandline.node.http.listening import CannotListen
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response, StreamedResponse
from strandline.node.http.routes import Access, Handler, Route
from strandline.node.http.server import HttpServer
from strandline.node.masking import SecretMask
from strandline.node.settings.http_sections import HttpSettings
from support.http_servers import MAX_BODY, Reply, Served, in_loop, served

pytestmark = pytest.mark.unit


async def hello(_request: Request) -> AnyResponse:
    return Response.text("hello")


async def body_length(request: Request) -> AnyResponse:
    return Response.text(str(len(await request.body.read())))


def raising(error: Exception) -> Handler:
    async def handler(_request: Request) -> AnyResponse:
        raise error

    return handler


def at(path: str, handler: Handler, *methods: str) -> Route:
    return Route(methods or ("GET",), path, handler, Access.READ)


ROUTES = (at("/", hello), at("/body", body_length, "POST"), at("/both", hello, "GET", "POST"))


def request_of(path: str, *routes: Route, method: str = "get", **parameters: object) -> Reply:
    async def test() -> Reply:
        async with served(routes or ROUTES) as serving:
            return await getattr(serving, method)(path, **parameters)

    return in_loop(test())


def error_of(reply: Reply) -> tuple[int, str, str]:
    body = orjson.loads(reply.body)
    assert body["status"] == "error"
    assert reply.headers["Content-Type"].startswith("application/json")
    return reply.status, body["errorType"], body["error"]


def test_a_handler_answers_with_headers_that_disable_mime_sniffing() -> None:
    reply = request_of("/")
    assert (reply.status, reply.body) == (200, b"hello")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["X-Frame-Options"] == "DENY"
    assert reply.headers["Server"] == "strandline"


def test_a_handler_may_set_its_own_caching() -> None:
    async def handler(_request: Request) -> AnyResponse:
        return Response(headers=(("Cache-Control", "max-age=60"),))

    reply = request_of("/x", at("/x", handler))
    assert reply.headers["Cache-Control"] == "max-age=60"
    assert reply.headers["Server"] == "strandline"


def test_head_is_answered_wherever_get_is() -> None:
    async def test() -> int:
        async with served(ROUTES) as serving, serving.client.head("/") as response:
            return response.status

    assert in_loop(test()) == 200


def test_an_unknown_path_is_404_in_the_envelope() -> None:
    assert error_of(request_of("/nothing"))[:2] == (404, "not_found")


def test_another_method_is_405_with_the_allowed_ones() -> None:
    reply = request_of("/body")
    status, kind, text = error_of(reply)
    assert (status, kind) == (405, "method_not_allowed")
    assert reply.headers["Allow"] == "POST"
    assert "Use POST" in text


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (BadParameter("x is wrong", remedy="Do this"), 400, "bad_data"),
        (Retryable("x is wrong", remedy="Do this"), 503, "unavailable"),
        (Fatal("x is wrong", remedy="Do this"), 500, "internal"),
    ],
)
def test_expected_errors_are_answered_with_message_and_remedy(error: Exception, status: int, kind: str) -> None:
    assert error_of(request_of("/x", at("/x", raising(error)))) == (status, kind, "x is wrong. Do this")


def test_secrets_are_hidden_in_errors() -> None:
    async def test() -> Reply:
        routes = [at("/x", raising(Retryable("the password hunter2-hunter2 was refused")))]
        async with served(routes, mask=SecretMask(["hunter2-hunter2"])) as serving:
            return await serving.get("/x")

    with capture_logs() as logs:
        reply = in_loop(test())
    assert b"hunter2" not in reply.body
    assert "hunter2" not in str(logs)


def test_an_unexpected_error_is_answered_only_with_an_id_that_is_logged() -> None:
    with capture_logs() as logs:
        status, kind, text = error_of(request_of("/x", at("/x", raising(ValueError("/etc/secret on line 7")))))
    assert (status, kind) == (500, "internal")
    error_id = re.search(r"the id ([0-9a-f]{8})$", text)
    assert error_id is not None
    assert "secret" not in text
    (logged,) = [line for line in logs if line["log_level"] == "error"]
    assert logged["error_id"] == error_id[1]
    assert str(logged["exc_info"]) == "/etc/secret on line 7"


@pytest.mark.parametrize("error", [ValueError("then it broke"), Retryable("the shard has gone")])
def test_an_incomplete_answer_is_recognisable_as_incomplete(error: Exception) -> None:
    async def half() -> AsyncGenerator[bytes, None]:
        yield b"half"
        raise error

    async def handler(_request: Request) -> AnyResponse:
        return StreamedResponse(half())

    with pytest.raises(aiohttp.ClientPayloadError):
        request_of("/x", at("/x", handler))


def test_queries_are_not_in_the_access_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), capture_logs() as logs:
        request_of("/?token=very-secret")
    (line,) = [line for line in logs if line["event"] == "request"]
    assert line["log_level"] == "debug"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/", 200)
    assert "very-secret" not in str(logs)


@pytest.mark.parametrize("size", [MAX_BODY, MAX_BODY + 1])
@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_may_be_as_large_as_the_limit_and_no_larger(size: int, *, chunked: bool) -> None:
    async def pieces() -> object:
        for start in range(0, size, 10_000):
            yield b"x" * min(10_000, size - start)

    reply = request_of("/body", method="post", data=pieces() if chunked else b"x" * size)
    if size == MAX_BODY:
        assert (reply.status, reply.body) == (200, str(size).encode())
    else:
        assert error_of(reply)[:2] == (413, "too_large")


def test_a_body_is_passed_on_as_it_was_sent() -> None:
    """Decompression is up to the handler, which knows a limit: a few bytes of gzip may expand to gigabytes."""
    reply = request_of("/body", method="post", data=b"not gzip at all", headers={"Content-Encoding": "gzip"})
    assert (reply.status, reply.body) == (200, b"15")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00 this is TLS, or noise\r\n\r\n",
        b"GET / HTTP/9.9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnot-a-length\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_invalid_http_is_400_without_details_of_the_server(request_bytes: bytes) -> None:
    async def test() -> bytes:
        async with served(ROUTES) as serving:
            return await serving.raw(request_bytes)

    answer = in_loop(test())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.")
    assert b" 400 " in head.splitlines()[0]
    assert b"Server: strandline\r\n" in head + b"\r\n"
    assert orjson.loads(body)["errorType"] == "bad_data"


def test_invalid_requests_are_not_logged_as_errors(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with served(ROUTES) as serving:
            await serving.raw(b"\x16\x03\x01 noise\r\n\r\n")

    with capture_logs() as logs, caplog.at_level(logging.INFO):
        in_loop(test())
    assert {line["log_level"] for line in logs} <= {"debug", "info"}
    assert not caplog.records


def test_a_handler_is_cancelled_when_its_client_disconnects() -> None:
    async def test() -> bool:
        began, ended = asyncio.Event(), asyncio.Event()

        async def handler(_request: Request) -> AnyResponse:
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.set()
                raise
            return Response()

        async with served([at("/x", handler)]) as serving:
            _, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port)
            writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await began.wait()
            writer.close()
            await writer.wait_closed()
            await ended.wait()
            return ended.is_set()

    assert in_loop(test())


def test_stopping_finishes_requests_and_accepts_no_new_ones() -> None:
    async def test() -> tuple[bytes, bool]:
        began, may_continue = asyncio.Event(), asyncio.Event()

        async def handler(_request: Request) -> AnyResponse:
            began.set()
            await may_continue.wait()
            return Response.text("ended")

        async with served([at("/x", handler)]) as serving:
            request = asyncio.create_task(serving.get("/x"))
            await began.wait()
            stopping = asyncio.create_task(serving.server.stop(30))
            while True:
                try:
                    _, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port)
                except ConnectionError:
                    break
                writer.close()
            waits = not stopping.done()
            may_continue.set()
            reply = await request
            await stopping
            return reply.body, waits

    assert in_loop(test()) == (b"ended", True)


def test_stopping_cancels_a_request_that_does_not_end() -> None:
    async def test() -> bool:
        began, cancelled = asyncio.Event(), asyncio.Event()

        async def handler(_request: Request) -> AnyResponse:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return Response()

        async with served([at("/x", handler)]) as serving:
            request = asyncio.create_task(serving.get("/x"))
            await began.wait()
            await serving.server.stop(0)
            with pytest.raises(aiohttp.ClientError):
                await request
        return cancelled.is_set()

    assert in_loop(test())


def test_a_server_that_can_not_start_closes_its_sockets() -> None:
    async def test() -> None:
        async with served(ROUTES) as serving:
            other = HttpServer(ROUTES, HttpSettings(), f"127.0.0.1:{serving.bound.port}", max_body=1)
            with pytest.raises(CannotListen):
                await other.start()
            await other.stop(1)

    in_loop(test())


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:1234", "[::1]:80", "127.9.9.9", "page.localhost", "LOCALHOST."]
)
def test_this_machines_host_names_are_accepted_without_a_token(host: str) -> None:
    assert request_of("/", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9460", "10.0.0.1", "localhost.evil.example", "127.0.0.1.nip.io"]
)
def test_another_host_name_is_refused_without_a_token_against_dns_rebinding(host: str) -> None:
    status, kind, text = error_of(request_of("/", headers={"Host": host}))
    assert (status, kind) == (403, "forbidden")
    assert host.partition(":")[0] in text
    assert "set a token" in text


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_a_form_that_another_sites_page_posts_is_refused(origin: str) -> None:
    reply = request_of("/body", method="post", data=b"x", headers={"Origin": origin})
    assert error_of(reply)[:2] == (403, "forbidden")


def test_a_page_of_this_server_may_post() -> None:
    async def test(serving: Served) -> int:
        return (await serving.post("/body", data=b"x", headers={"Origin": serving.bound.url})).status

    async def run() -> int:
        async with served(ROUTES) as serving:
            return await test(serving)

    assert in_loop(run()) == 200
