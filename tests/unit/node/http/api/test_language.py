"""`format_query` and `parse_query` over HTTP."""

from typing import Any

import orjson
import pytest

from support.fake_queries import FakeQueries
from support.http_servers import api_served, in_loop

pytestmark = pytest.mark.unit


def send(path: str, query: str, *, post: bool = False) -> tuple[int, Any]:
    async def test() -> tuple[int, Any]:
        async with api_served(FakeQueries()) as serving:
            if post:
                reply = await serving.post(f"/api/v1/{path}", data={"query": query})
            else:
                reply = await serving.get(f"/api/v1/{path}", params={"query": query})
            return reply.status, orjson.loads(reply.body)

    return in_loop(test())


@pytest.mark.parametrize("post", [False, True])
def test_a_query_is_formatted(*, post: bool) -> None:
    assert send("format_query", "sum  by(b,a)(rate( x [5m] ))", post=post) == (
        200,
        {"status": "success", "data": "sum by (b, a) (rate(x[5m]))"},
    )


@pytest.mark.parametrize("post", [False, True])
def test_a_query_has_a_tree(*, post: bool) -> None:
    status, body = send("parse_query", "-up", post=post)
    assert (status, body["data"]["type"], body["data"]["expr"]["type"]) == (200, "unaryExpr", "vectorSelector")


def test_a_long_query_may_be_posted() -> None:
    assert send("format_query", "up" + " " * 3000) == (200, {"status": "success", "data": "up"})


@pytest.mark.parametrize("path", ["format_query", "parse_query"])
def test_a_query_that_does_not_parse_is_bad_data(path: str) -> None:
    for query in ("sum(", "", "x" * 70_000):
        status, body = send(path, query, post=True)
        assert (status, body["errorType"]) == (400, "bad_data")
        assert body["error"].startswith('invalid parameter "query": ')


def test_bytes_that_are_not_utf8_are_shown_as_such() -> None:
    assert send("parse_query", r'"\xff"')[1]["data"] == {"type": "stringLiteral", "val": "\ufffd"}
    assert send("format_query", r'"\xff"')[0] == 200
