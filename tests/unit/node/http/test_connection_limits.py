"""Limits on the sizes and rates of requests and answers, and on handshakes."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

import orjson
import pytest

from strandline.node.http import handshakes
from strandline.node.http.handshakes import MAX_HANDSHAKES
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response, StreamedResponse
from strandline.node.http.routes import Access, Route
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.settings.http_sections import HttpSettings
from support.http_servers import Served, in_loop, served
from support.limited_connections import (
    GET,
    GET_ONCE,
    POST,
    ROUTES,
    answer_of,
    body_length,
    connected,
    limits,
    status_of,
    talk,
)

pytestmark = pytest.mark.unit


async def eventually(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


def test_a_client_that_sends_nothing_is_closed() -> None:
    assert talk(b"", request_timeout_s=0.05) == b""


@pytest.mark.parametrize("sent", [GET[:20], GET[:-2]])
def test_a_client_that_does_not_send_all_of_its_head_is_answered_408(sent: bytes) -> None:
    answer = talk(sent, request_timeout_s=0.05)
    assert status_of(answer) == 408
    assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["error"] == "the request did not arrive within 0.05 s"


def test_a_client_that_does_not_send_its_body_is_answered_408() -> None:
    answer = talk(POST + b"a few bytes", request_timeout_s=0.05)
    assert status_of(answer) == 408


def test_a_client_that_sends_its_body_too_slowly_is_answered_408() -> None:
    async def test() -> int:
        async with served(ROUTES, limits=limits(min_rate=10_000, rate_window_s=0.05)) as serving:
            reader, writer = await connected(serving)
            writer.write(POST)
            answer = asyncio.ensure_future(answer_of(reader))
            while not answer.done():
                # It sends continuously, but slowly.
                writer.write(b"x")
                await asyncio.wait([answer], timeout=0.02)
            writer.close()
            return status_of(answer.result())

    assert in_loop(test()) == 408


def test_a_body_whose_handler_does_not_read_is_not_too_slow() -> None:
    async def test() -> bytes:
        may_read = asyncio.Event()

        async def late(request: Request) -> AnyResponse:
            await may_read.wait()
            return await body_length(request)

        routes = (Route(("POST",), "/body", late, Access.READ),)
        async with served(
            routes, limits=limits(min_rate=1 << 20, rate_window_s=0.03, request_timeout_s=0.06)
        ) as serving:
            reader, writer = await connected(serving)
            writer.write(POST)
            # Several windows pass before the handler reads.
            await asyncio.sleep(0.2)
            may_read.set()
            writer.write(b"x" * 100)
            answer = await answer_of(reader)
            writer.close()
            return answer

    assert in_loop(test()).endswith(b"100")


def test_an_idle_connection_is_closed_after_its_last_answer() -> None:
    assert talk(GET, request_timeout_s=0.05).endswith(b"hello")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000, 431),
    ],
)
def test_a_head_that_is_too_long_is_refused(sent: bytes, status: int) -> None:
    async def test() -> bytes:
        async with served(ROUTES, limits=limits()) as serving:
            reader, writer = await connected(serving)
            writer.write(sent)
            answer = await answer_of(reader)
            writer.close()
            return answer

    answer = in_loop(test())
    assert status_of(answer) == status
    assert b"Connection: close" in answer


async def stream(block: bytes, count: int) -> AsyncGenerator[bytes, None]:
    for _ in range(count):
        yield block


def streaming(block: bytes, count: int) -> Route:
    async def handler(_request: Request) -> AnyResponse:
        return StreamedResponse(stream(block, count))

    return Route(("GET",), "/long", handler, Access.READ)


def slow_reader(serving: Served, path: bytes = b"/long") -> socket.socket:
    """A client that sends a request and does not read the answer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((serving.bound.host, serving.bound.port))
    client.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return client


async def whole(_request: Request) -> AnyResponse:
    return Response(b"x" * (16 << 20))


@pytest.mark.parametrize("path", [b"/long", b"/whole"])
def test_a_client_that_reads_too_little_of_an_answer_is_disconnected_and_its_memory_released(path: bytes) -> None:
    async def test() -> int:
        memory = AnswerMemory(1 << 30)
        routes = (streaming(b"x" * (1 << 20), 16), Route(("GET",), "/whole", whole, Access.READ))
        async with served(routes, memory=memory, limits=limits(min_rate=1 << 20, rate_window_s=0.2)) as serving:
            with slow_reader(serving, path):
                await eventually(lambda: memory.used > 0)
                used = memory.used
                await eventually(lambda: memory.used == 0)
            return used

    used = in_loop(test())
    assert used <= (16 << 20 if path == b"/whole" else 1 << 20)


def test_a_client_that_reads_an_answer_slowly_but_steadily_gets_all_of_it() -> None:
    async def test() -> int:
        routes = (streaming(b"x" * 50_000, 20),)
        # The answer takes several windows, each long enough for a client on a busy machine.
        async with served(routes, limits=limits(min_rate=1000, rate_window_s=0.3)) as serving:
            with slow_reader(serving) as client:
                client.setblocking(False)
                loop, received = asyncio.get_running_loop(), 0
                while received < 1_000_000:
                    received += len(await loop.sock_recv(client, 20_000))
                    await asyncio.sleep(0.02)
                return received

    assert in_loop(test()) >= 1_000_000


def test_a_block_of_an_answer_is_produced_only_after_the_client_has_read_the_previous_one() -> None:
    async def test() -> int:
        produced = 0

        async def blocks() -> AsyncGenerator[bytes, None]:
            nonlocal produced
            for _ in range(100):
                produced += 1
                yield b"x" * (8 << 20)

        async def handler(_request: Request) -> AnyResponse:
            return StreamedResponse(blocks())

        memory = AnswerMemory(1 << 30)
        routes = (Route(("GET",), "/long", handler, Access.READ),)
        async with served(routes, memory=memory, limits=limits()) as serving:
            with slow_reader(serving):
                await eventually(lambda: memory.used > 0)
                await asyncio.sleep(0.05)
                return produced

    assert in_loop(test()) == 1


def test_over_tls_a_client_that_has_read_all_is_no_slow_reader(
    encrypted: HttpSettings, trusting: ssl.SSLContext
) -> None:
    async def test() -> None:
        # Several windows of the rate watch follow each answer.
        strict = limits(min_rate=1 << 30, rate_window_s=0.02)
        routes = (*ROUTES, streaming(b"x" * 200_000, 10))
        async with served(routes, encrypted, limits=strict) as serving, asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port, ssl=trusting)
            for _ in range(3):
                writer.write(GET)
                assert (await answer_of(reader)).endswith(b"hello")
                await asyncio.sleep(0.1)
            writer.write(b"GET /long HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            body = (await reader.read()).partition(b"\r\n\r\n")[2]
            assert body.count(b"x") == 2_000_000
            assert body.endswith(b"\r\n0\r\n\r\n")
            writer.close()

    in_loop(test())


def test_clients_without_a_handshake_occupy_few_sockets_and_do_not_block_others(
    encrypted: HttpSettings, trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that no connection is closed by the handshake timeout.
    monkeypatch.setattr(handshakes, "_HANDSHAKE_TIMEOUT_S", 600)

    async def test() -> None:
        async with served(ROUTES, encrypted, limits=limits(connections=1)) as serving:
            address = serving.bound.host, serving.bound.port
            silent = [await asyncio.open_connection(*address) for _ in range(300)]
            # The newest connection is kept, and a client that completes its handshake at once is served.
            reply = await serving.get("/", ssl=trusting)
            assert (reply.status, reply.body) == (200, b"hello")
            disconnected = 0
            for reader, _ in silent[: 300 - MAX_HANDSHAKES]:
                with suppress(ConnectionError):
                    assert await reader.read() == b""
                disconnected += 1
            assert disconnected == 300 - MAX_HANDSHAKES
            for _, writer in silent:
                writer.close()

    in_loop(test())


def test_a_request_that_arrives_with_the_end_of_the_handshake_is_answered(
    encrypted: HttpSettings, trusting: ssl.SSLContext
) -> None:
    """A TLS 1.3 client may send both in one packet."""

    def send_with_handshake(host: str, port: int) -> bytes:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trusting.wrap_bio(incoming, outgoing, server_hostname=host)
        with socket.create_connection((host, port)) as connection:
            while True:
                try:
                    client.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    incoming.write(connection.recv(65536))
            client.write(GET_ONCE)
            connection.sendall(outgoing.read())
            received = b""
            while data := connection.recv(65536):
                incoming.write(data)
                with suppress(ssl.SSLWantReadError):
                    received += client.read(65536)
        return received

    async def test() -> bytes:
        async with served(ROUTES, encrypted) as serving:
            return await asyncio.to_thread(send_with_handshake, serving.bound.host, serving.bound.port)

    assert status_of(in_loop(test())) == 200
