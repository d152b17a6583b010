"""The limit on the number of connections: refused requests, health checks, and the eviction of waiting connections."""

import asyncio

import pytest

from strandline.node.http.connection_limits import Awaited, OpenConnections, Waiting
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response
from strandline.node.http.routes import Access, Route
from support.http_servers import in_loop, served
from support.limited_connections import (
    GET,
    GET_ONCE,
    HEALTH,
    ROUTES,
    answer_of,
    connected,
    limits,
    status_of,
)

pytestmark = pytest.mark.unit


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
def test_connections_are_evicted_in_the_order_of_their_states(
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
