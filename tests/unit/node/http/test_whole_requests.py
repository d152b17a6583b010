"""Requests that are read without aiohttp: the same as it would read, or not at all."""

import asyncio
from unittest import mock

import pytest
from aiohttp.http_parser import HttpRequestParser
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.node.http.whole_requests import RequestReader, WholeRequest

pytestmark = pytest.mark.unit

LINE = b"GET /api/v1/labels?start=1&end=2 HTTP/1.1\r\n"
FIELDS = b"Host: localhost\r\nAccept: */*\r\n"


def read(data: bytes) -> WholeRequest | None:
    return RequestReader().read(data)


def test_a_plain_request_is_read() -> None:
    request = read(LINE + FIELDS + b"\r\n")
    assert request is not None
    assert (request.method, request.path, request.query) == ("GET", "/api/v1/labels", "start=1&end=2")
    assert dict(request.headers) == {"host": "localhost", "accept": "*/*"}
    assert request.headers["HOST"] == "localhost"
    assert "Cookie" not in request.headers
    assert request.body == b""


def test_a_form_is_read_with_its_body() -> None:
    request = read(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=b")
    assert request is not None
    assert (request.method, request.path, request.query, request.body) == ("POST", "/x", "", b"a=b")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        LINE,
        LINE + FIELDS,
        LINE + FIELDS + b"\r",
        LINE + FIELDS + b"\r\n" + LINE + FIELDS + b"\r\n",
        LINE + FIELDS + b"\r\nx",
        LINE + b"\r\n",
        LINE + b"Accept: x\r\n\r\n",
        LINE + b"Host:\r\n\r\n",
        LINE + FIELDS + b"host: other\r\n\r\n",
        LINE + FIELDS + b"Content-Length: 1\r\n\r\n",
        LINE + FIELDS + b"Content-Length: 2\r\n\r\nx",
        LINE + FIELDS + b"Content-Length: +1\r\n\r\nx",
        LINE + FIELDS + b"Content-Length: 01\r\n\r\nx",
        LINE + FIELDS + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        LINE + FIELDS + b"Expect: 100-continue\r\n\r\n",
        LINE + FIELDS + b"Upgrade: h2c\r\n\r\n",
        LINE + FIELDS + b"Connection: close\r\n\r\n",
        LINE + FIELDS + b"Proxy-Connection: close\r\n\r\n",
        LINE + FIELDS + b"Connection: keep-alive, upgrade\r\n\r\n",
        LINE + FIELDS + b"X: a\r\n folded\r\n\r\n",
        LINE + FIELDS + b"X : a\r\n\r\n",
        LINE + FIELDS + b"X: \x80\r\n\r\n",
        LINE + FIELDS + b"X: a\nY: b\r\n\r\n",
        LINE + b"Host: a\r\n" + b"".join(b"X%d: a\r\n" % number for number in range(100)) + b"\r\n",
        LINE + FIELDS + b"X: " + b"a" * (16 << 10) + b"\r\n\r\n",
        b"GET /x HTTP/1.0\r\n" + FIELDS + b"\r\n",
        b"GET  /x HTTP/1.1\r\n" + FIELDS + b"\r\n",
        b"GET x HTTP/1.1\r\n" + FIELDS + b"\r\n",
        b"GET http://a/x HTTP/1.1\r\n" + FIELDS + b"\r\n",
        b"GET /x#y HTTP/1.1\r\n" + FIELDS + b"\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\n" + FIELDS + b"\r\n",
        b"get /x HTTP/1.1\r\n" + FIELDS + b"\r\n",
        b"\r\n" + LINE + FIELDS + b"\r\n",
    ],
)
def test_whatever_is_not_plain_is_left_to_aiohttp(data: bytes) -> None:
    assert read(data) is None


def test_fields_that_are_sent_again_are_the_same_ones() -> None:
    reader = RequestReader()
    first = reader.read(LINE + FIELDS + b"\r\n")
    again = reader.read(b"GET /other HTTP/1.1\r\n" + FIELDS + b"\r\n")
    assert first is not None
    assert again is not None
    assert again.headers is first.headers
    assert again.path == "/other"
    another = reader.read(LINE + b"Host: elsewhere\r\n\r\n")
    assert another is not None
    assert another.headers["host"] == "elsewhere"


def test_a_body_is_not_taken_for_that_of_the_request_before() -> None:
    reader = RequestReader()
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"
    for body in (b"a", b"b"):
        request = reader.read(head + body)
        assert request is not None
        assert request.body == body
    assert reader.read(head) is None


async def by_aiohttp(data: bytes) -> tuple[str, str, dict[str, str], bytes] | None:
    """The one request that aiohttp finds in some bytes, None if it finds none or more."""
    parser = HttpRequestParser(mock.Mock(), asyncio.get_running_loop(), 1 << 16)
    try:
        messages, _, _ = parser.feed_data(data)
    except Exception:  # noqa: BLE001 - whatever it is, it is no request
        return None
    if len(messages) != 1:
        return None
    ((message, payload),) = messages
    body = await payload.read() if payload.is_eof() else b"?"
    fields = {name.lower(): value for name, value in message.headers.items()}
    return message.method, message.path, fields, body


printable = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=12)
tokens = st.text(st.sampled_from("abcXYZ019-_!~"), min_size=1, max_size=8)
fields = st.lists(st.tuples(st.one_of(tokens, st.sampled_from(["Host", "Accept", "Content-Length"])), printable))


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "G E T", "get"]),
    target=st.text(st.sampled_from("/abc?&=%2F+.~[]{}\"'#\x7f "), max_size=20).map(lambda text: "/" + text),
    fields=fields,
    body=st.binary(max_size=5),
    cut=st.integers(0, 10),
)
@example("GET", "/?a?b", [("Host", "a")], b"", 0)
@example("GET", '/a"b', [("Host", " a\t ")], b"", 0)
def test_what_is_read_is_what_aiohttp_reads(
    method: str, target: str, fields: list[tuple[str, str]], body: bytes, cut: int
) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    whole = f"{method} {target} HTTP/1.1\r\nHost: a\r\n{length}{lines}\r\n".encode() + body
    data = whole[: len(whole) - cut]
    request = read(data)
    if request is None:
        return
    found = asyncio.run(by_aiohttp(data))
    assert found is not None
    target = request.path + ("?" + request.query if "?" in target else "")
    assert found == (request.method, target, dict(request.headers), request.body)
