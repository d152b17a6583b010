"""Limits on the sizes and rates of requests and answers, and on the number of connections."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

import orjson
import pytest

from strandline.node.http import handshakes
from strandline.node.http.connection_limits import Awaited, ConnectionLimits, OpenConnections, Waiting
from strandline.node.http.handshakes import MAX_HANDSHAKES
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response, StreamedResponse
from strandline.node.http.routes import Access, Route
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.settings.http_sections import HttpSettings
from support.http_servers import Served, in_loop, served

pytestmark = pytest.mark.unit

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


async def eventually(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


async def connected(serving: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(serving.bound.host, serving.bound.port)


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    assert length is not None
    return head + await reader.readexactly(int(length[1]))


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


def test_over_the_limit_requests_are_503_but_health_checks_are_answered() -> None:
    async def test() -> tuple[bytes, bytes, bytes]:
        started, may_continue = asyncio.Event(), asyncio.Event()

        async def held(_request: Request) -> AnyResponse:
            started.set()
            await may_continue.wait()
            return Response.text("held")

        routes = (*ROUTES, Route(("GET",), "/held", held, Access.READ))
        async with served(routes, limits=limits(connections=1)) as serving:
            reader, writer = await connected(serving)
            writer.write(b"GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await started.wait()
            refused, healthy = await serving.raw(GET), await serving.raw(HEALTH)
            may_continue.set()
            answer = await answer_of(reader)
            writer.close()
            return refused, healthy, answer

    refused, healthy, answer = in_loop(test())
    assert status_of(refused) == 503
    assert b"Retry-After: 1" in refused
    assert b"http.connections" in refused
    assert status_of(healthy) == 200
    assert answer.endswith(b"held")


def test_a_health_check_gets_a_connection_however_many_others_wait() -> None:
    async def test() -> bytes:
        async with served(ROUTES, limits=limits(connections=1)) as serving:
            waiting = [await connected(serving) for _ in range(100)]
            answer = await serving.raw(HEALTH)
            for _, writer in waiting:
                writer.close()
            return answer

    assert status_of(in_loop(test())) == 200


def test_over_the_limit_an_idle_connection_makes_room() -> None:
    async def test() -> tuple[bytes, bytes]:
        async with served(ROUTES, limits=limits(connections=1)) as serving:
            first, first_writer = await connected(serving)
            first_writer.write(GET)
            await answer_of(first)
            # A connection is not evicted for a second after its last answer.
            early = await serving.raw(GET)
            while True:
                reader, writer = await connected(serving)
                writer.write(GET)
                answer = await answer_of(reader)
                writer.close()
                if status_of(answer) == 200:
                    rest = await first.read()
                    first_writer.close()
                    return early, rest
                await asyncio.sleep(0.05)

    early, rest = in_loop(test())
    assert status_of(early) == 503
    assert rest == b""


@pytest.mark.parametrize("sent", [b"", GET[:20]], ids=["nothing", "a part of a head"])
def test_over_the_limit_connections_without_a_request_make_room(sent: bytes) -> None:
    async def test() -> bytes:
        async with served(ROUTES, limits=limits(connections=3)) as serving:
            silent = [await connected(serving) for _ in range(3)]
            for _, writer in silent:
                writer.write(sent)
            while status_of(answer := await serving.raw(GET_ONCE)) != 200:
                await asyncio.sleep(0.05)
            rest = await silent[0][0].read()
            for _, writer in silent:
                writer.close()
            assert rest == b"", "the oldest one was evicted"
            return answer

    assert in_loop(test()).endswith(b"hello")


class FakeConnection:
    """A connection with the state that decides on its eviction."""

    is_busy = is_waiting_for_first_request = False

    def __init__(self, awaited: Awaited | None, for_s: float = 0.0) -> None:
        self.waiting = Waiting(awaited, asyncio.get_running_loop().time() - for_s) if awaited is not None else None
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    stop = abort = close

    def check_limits(self, now: float) -> None: ...


@pytest.mark.parametrize(
    ("waiting", "evicted"),
    [
        ([(Awaited.NEXT_REQUEST, 50), (Awaited.FIRST_BYTE, 2), (Awaited.FIRST_BYTE, 3)], 2),
        ([(Awaited.REST_OF_HEAD, 50), (Awaited.NEXT_REQUEST, 2), (None, 0)], 1),
        ([(None, 0), (Awaited.REST_OF_HEAD, 6), (Awaited.REST_OF_HEAD, 5.5)], 1),
        ([(Awaited.FIRST_BYTE, 0.5), (Awaited.NEXT_REQUEST, 0.5), (Awaited.REST_OF_HEAD, 4.5)], None),
        ([(None, 0)] * 3, None),
    ],
)
def test_connections_are_evicted_in_the_order_of_what_they_wait_for(
    waiting: list[tuple[Awaited | None, float]], evicted: int | None
) -> None:
    async def test() -> None:
        connections = OpenConnections(limits(connections=3))
        members = [FakeConnection(awaited, for_s) for awaited, for_s in waiting]
        assert all(connections.admit(member) for member in members)
        assert connections.admit(FakeConnection(None)) is (evicted is not None)
        connections.stop()
        assert [place for place, member in enumerate(members) if member.is_closed] == (
            [] if evicted is None else [evicted]
        )

    in_loop(test())


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


def test_clients_without_a_handshake_hold_few_sockets_and_do_not_block_others(
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
