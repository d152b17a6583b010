"""Requests whose bodies are still arriving: the room that they reserve, and bodies that never arrive."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.gateway import RECORD_OVERHEAD
from strandline.node.gateway.options import GatewayOptions
from support.gateways import HEADERS, InProcessGateway, body_of, eventually_in_loop, serving, up
from support.http_servers import in_loop

pytestmark = pytest.mark.unit

LARGE = 16 << 20


def run(
    test: Callable[[InProcessGateway], Awaitable[None]],
    options: GatewayOptions | None = None,
    http: Mapping[str, object] | None = None,
) -> InProcessGateway:
    async def serve_and_test() -> InProcessGateway:
        async with serving(options, http=http) as gateway:
            await test(gateway)
            await eventually_in_loop(lambda: gateway.gateway.figures().in_flight_bytes == 0)
        return gateway

    return in_loop(serve_and_test())


@asynccontextmanager
async def announced_body(
    gateway: InProcessGateway, length: int, sent: bytes = b"", **headers: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client that announces a body, sends a part of it, and disconnects at the end."""
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    fields = {**HEADERS, "Host": host, "Content-Length": str(length), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    writer.write(f"POST /api/v1/write HTTP/1.1\r\n{head}\r\n".encode() + sent)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def in_flight(gateway: InProcessGateway) -> int:
    return gateway.gateway.figures().in_flight_bytes


def test_clients_that_announce_a_large_body_and_send_none_reserve_almost_no_room() -> None:
    """Their bodies together are four times as large as the limit."""

    async def test(gateway: InProcessGateway) -> None:
        async with AsyncExitStack() as clients:
            for _ in range(4):
                await clients.enter_async_context(announced_body(gateway, LARGE))
            await eventually_in_loop(lambda: in_flight(gateway) == 4 * RECORD_OVERHEAD)
            assert (await gateway.write(body_of(up(1)))).status == 204
            assert gateway.gateway.figures().waiting_requests == 0

    gateway = run(test, GatewayOptions(max_in_flight=LARGE))
    assert gateway.gateway.figures().requests[Outcome.CLIENT_GONE] == 4


def test_room_is_reserved_for_the_bytes_that_have_arrived() -> None:
    async def test(gateway: InProcessGateway) -> None:
        async with announced_body(gateway, LARGE, bytes(5_000)) as (_, writer):
            await eventually_in_loop(lambda: in_flight(gateway) == RECORD_OVERHEAD + 5_000)
            writer.write(bytes(3_000))
            await eventually_in_loop(lambda: in_flight(gateway) == RECORD_OVERHEAD + 8_000)

    run(test)


def test_partial_bodies_that_together_exceed_the_limit_all_succeed() -> None:
    async def test(gateway: InProcessGateway) -> None:
        bodies = [body_of(*(up(100 * number + place) for place in range(100))) for number in range(12)]

        async def halves(body: bytes) -> AsyncIterator[bytes]:
            for start in range(0, len(body), 200):
                yield body[start : start + 200]
                await asyncio.sleep(0)

        answers = await asyncio.gather(*(gateway.write(halves(body)) for body in bodies))
        assert [answer.status for answer in answers] == [204] * len(bodies)
        assert len(gateway.written()) == 1200

    run(test, GatewayOptions(max_in_flight=16 << 10, timeout_s=60))


def test_a_body_without_room_for_its_rest_is_put_off_and_releases_everything() -> None:
    options = GatewayOptions(max_in_flight=20_000, timeout_s=0.4)

    async def test(gateway: InProcessGateway) -> None:
        async with announced_body(gateway, LARGE, bytes(10_000)):
            await eventually_in_loop(lambda: in_flight(gateway) == RECORD_OVERHEAD + 10_000)
            async with announced_body(gateway, LARGE, bytes(12_000)) as (reader, _):
                assert (await reader.readline()).startswith(b"HTTP/1.1 503 ")
                rest = await reader.read()
                assert b"Retry-After: 1\r\n" in rest
                assert b"gateway.max_in_flight (20000 bytes) is reached" in rest
                assert b"requests that are still arriving hold" in rest
                assert b"Kafka is not the cause" in rest
            await eventually_in_loop(lambda: in_flight(gateway) == RECORD_OVERHEAD + 10_000)

    assert run(test, options).gateway.figures().requests[Outcome.PUT_OFF] == 1


def test_a_client_that_disconnects_while_its_body_waits_releases_its_room() -> None:
    options = GatewayOptions(max_in_flight=20_000, timeout_s=60)

    async def test(gateway: InProcessGateway) -> None:
        async with announced_body(gateway, LARGE, bytes(10_000)):
            await eventually_in_loop(lambda: in_flight(gateway) == RECORD_OVERHEAD + 10_000)
            async with announced_body(gateway, LARGE, bytes(12_000)):
                await eventually_in_loop(lambda: gateway.gateway.figures().waiting_requests == 1)
            await eventually_in_loop(lambda: in_flight(gateway) == RECORD_OVERHEAD + 10_000)
            assert gateway.gateway.figures().waiting_requests == 0

    assert run(test, options).gateway.figures().requests[Outcome.CLIENT_GONE] == 2


def test_a_client_gets_100_continue_only_when_the_gateway_reads_the_body() -> None:
    async def test(gateway: InProcessGateway) -> None:
        body = body_of(up(1))
        async with announced_body(gateway, len(body), Expect="100-continue") as (reader, writer):
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(body)
            assert (await reader.readline()).startswith(b"HTTP/1.1 204 ")
        async with announced_body(gateway, len(body), Expect="100-continue", **{"Content-Encoding": "gzip"}) as (
            reader,
            _,
        ):
            assert (await reader.readline()).startswith(b"HTTP/1.1 415 ")

    run(test)


def test_a_body_that_can_not_be_parsed_is_refused_in_one_line_of_text() -> None:
    async def test(gateway: InProcessGateway) -> None:
        host, port = gateway.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
        writer.write(
            f"POST /api/v1/write HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n{head}\r\n".encode()
        )
        writer.write(b"5\r\nabcde\r\n")
        await eventually_in_loop(lambda: in_flight(gateway) > RECORD_OVERHEAD)
        writer.write(b"no length\r\n")
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"text/plain" in answer

    assert run(test).gateway.figures().requests[Outcome.REFUSED] == 1
