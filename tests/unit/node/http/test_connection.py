"""Requests on one connection: in pieces, pipelined, and in other versions and forms of HTTP."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator

import pytest

from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Response, StreamedResponse
from strandline.node.http.routes import Access, Route
from support.http_servers import in_loop, served

pytestmark = pytest.mark.unit


async def echo(request: Request) -> AnyResponse:
    body = await request.body.read()
    return Response.text(f"{request.method} {request.path} {request.query} {request.wildcard('name')} {body.decode()}")


async def blocks() -> AsyncGenerator[bytes, None]:
    for block in (b"one ", b"", b"two ", b"three"):
        yield block


async def streamed(_request: Request) -> AnyResponse:
    return StreamedResponse(blocks(), content_type="text/plain")


async def no_content(_request: Request) -> AnyResponse:
    return Response(status=204)


async def unread(_request: Request) -> AnyResponse:
    return Response.text("no need to read")


ROUTES = (
    Route(("GET", "POST"), "/", echo, Access.READ),
    Route(("GET",), "/streamed", streamed, Access.READ),
    Route(("GET",), "/label/{name}/values", echo, Access.READ),
    Route(("POST",), "/nothing", no_content, Access.READ),
    Route(("POST",), "/unread", unread, Access.READ),
)


def request(target: str = "/", *fields: str, method: str = "GET", body: bytes = b"", version: str = "1.1") -> bytes:
    length = [f"Content-Length: {len(body)}"] if body or method == "POST" else []
    lines = [f"{method} {target} HTTP/{version}", "Host: localhost", *fields, *length]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


CLOSE = "Connection: close"


def talk(*pieces: bytes) -> bytes:
    """Send each piece separately, and return all bytes until the server closes."""

    async def test() -> bytes:
        async with served(ROUTES) as serving:
            reader, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

    return in_loop(test())


def bodies(answers: bytes) -> list[bytes]:
    """The bodies of answers with a Content-Length."""
    contents = []
    while answers:
        head, _, answers = answers.partition(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        size = int(length[1]) if length is not None else 0
        contents.append(answers[:size])
        answers = answers[size:]
    return contents


def test_requests_are_answered_one_after_the_other_on_one_connection() -> None:
    first, second = request("/?a=1"), request("/?b=2", CLOSE)
    assert bodies(talk(first, second)) == [b"GET / a=1  ", b"GET / b=2  "]


def test_requests_sent_at_once_are_answered_in_their_order() -> None:
    requests = [request(f"/?n={n}", *([CLOSE] if n == 99 else [])) for n in range(100)]
    assert bodies(talk(b"".join(requests))) == [f"GET / n={n}  ".encode() for n in range(100)]


def test_a_request_after_one_with_a_body_is_read() -> None:
    posted = request("/", method="POST", body=b"form")
    assert bodies(talk(posted + request("/?x", CLOSE))) == [b"POST /   form", b"GET / x  "]


@pytest.mark.parametrize("seed", range(20))
def test_a_request_is_parsed_alike_in_any_division(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    chunked = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    )
    requests = request("/?q=1") + chunked + request("/label/a%2Fb/values", CLOSE)
    cuts = sorted(rng.sample(range(1, len(requests)), rng.randint(1, 30)))
    pieces = [requests[start:end] for start, end in zip([0, *cuts], [*cuts, len(requests)], strict=True)]
    expected = [b"GET / q=1  ", b"POST /   abcde", b"GET /label/a%2Fb/values  a/b "]
    assert bodies(talk(*pieces)) == expected


def test_a_long_answer_is_chunked() -> None:
    answer = talk(request("/streamed", CLOSE))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert body == b"4\r\none \r\n4\r\ntwo \r\n5\r\nthree\r\n0\r\n\r\n"


def test_a_client_of_http_1_0_gets_a_long_answer_without_chunks_and_the_end_of_the_connection() -> None:
    answer = talk(request("/streamed", version="1.0"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert b"Connection: close" in head
    assert body == b"one two three"


def test_a_client_of_http_1_0_need_not_name_the_host() -> None:
    assert talk(b"GET / HTTP/1.0\r\n\r\n").endswith(b"GET /   ")


@pytest.mark.parametrize("target", ["/", "/streamed"])
def test_head_has_the_same_head_and_no_body(target: str) -> None:
    answer = talk(request(target, CLOSE, method="HEAD"))
    assert answer.endswith(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def test_head_does_not_disturb_the_next_request() -> None:
    answers = talk(request("/streamed", method="HEAD") + request("/?x", CLOSE))
    assert answers.endswith(b"GET / x  ")


def test_an_answer_without_content_has_no_length() -> None:
    answer = talk(request("/nothing", CLOSE, method="POST"))
    assert answer.startswith(b"HTTP/1.1 204 No Content\r\n")
    assert b"Content-Length" not in answer
    assert b"\r\nContent-Type:" not in answer


def test_a_client_that_waits_for_100_continue_gets_it_once() -> None:
    async def test() -> bytes:
        async with served(ROUTES) as serving:
            reader, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port)
            head, _, body = request("/", "Expect: 100-continue", CLOSE, method="POST", body=b"later").partition(
                b"\r\n\r\n"
            )
            writer.write(head + b"\r\n\r\n")
            interim = await reader.readuntil(b"\r\n\r\n")
            for byte in body:
                writer.write(bytes([byte]))
                await asyncio.sleep(0)
            answer = await reader.read()
            writer.close()
            return interim + answer

    answer = in_loop(test())
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert answer.count(b"100 Continue") == 1
    assert answer.endswith(b"POST /   later")


def test_without_a_read_of_the_body_100_continue_is_not_sent() -> None:
    waits = b"POST /unread HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n"
    answer = talk(waits)
    assert b"100 Continue" not in answer
    assert b"Connection: close" in answer
    assert answer.endswith(b"no need to read")


def test_a_request_to_change_the_protocol_is_answered_in_http_1_1_and_is_the_last() -> None:
    upgrade = request("/?a", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    answer = talk(upgrade + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert answer.endswith(b"GET / a  ")
    assert b"Connection: close" in answer


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("http://localhost/?a=b", b"GET / a=b  "),
        ("http://localhost", b"GET /   "),
        ("/label/%E2%82%AC/values?x", "GET /label/%E2%82%AC/values x € ".encode()),
    ],
)
def test_all_forms_of_a_target_are_accepted(target: str, answer: bytes) -> None:
    assert talk(request(target, CLOSE)).endswith(answer)


@pytest.mark.parametrize("target", ["//", "/label//values", "/label/a/b/values", "/label/x/values/", "*"])
def test_a_path_without_a_route_is_not_found(target: str) -> None:
    method = "OPTIONS" if target == "*" else "GET"
    assert talk(request(target, CLOSE, method=method)).split(b" ", 2)[1] in (b"404", b"405")


@pytest.mark.parametrize("seed", range(30))
def test_invalid_bytes_do_not_affect_other_clients(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    valid = request("/", method="POST", body=b"x" * 50)

    async def test() -> bytes:
        async with served(ROUTES) as serving:
            for _ in range(10):
                noise = bytearray(valid)
                for _ in range(rng.randint(1, 8)):
                    noise[rng.randrange(len(noise))] = rng.randrange(256)
                reader, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port)
                writer.write(noise[: rng.randint(1, len(noise))])
                writer.write_eof()
                await reader.read()
                writer.close()
            return await serving.raw(request("/?fine", CLOSE))

    assert in_loop(test()).endswith(b"GET / fine  ")
