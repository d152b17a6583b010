"""Remote-read requests over HTTP, and their complete responses."""

import io
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import TypeVar

import aiohttp

from strandline.node.http.connection_limits import ConnectionLimits
from strandline.node.http.remote_read.handler import MAX_BODY, read_routes
from strandline.node.http.routes import Access
from strandline.node.masking import SecretMask
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers
from support.http_servers import Served, in_loop, served
from support.read_queries import ReadQueries
from support.remote_read import (
    LabelMatcher,
    Labels,
    Query,
    Samples,
    bits_of,
    packed_request,
)

STALE = 0x7FF0000000000002


UP_A: Labels = (("__name__", "up"), ("job", "a"))


UP_B: Labels = (("__name__", "up"), ("job", "b"))


LOAD: Labels = (("__name__", "load"), ("job", "a"))


SERIES: dict[Labels, Samples] = {
    LOAD: [(1000, bits_of(0.5)), (2000, bits_of(0.7))],
    UP_A: [(1000, bits_of(1.0)), (2000, bits_of(1.0)), (3000, STALE)],
    UP_B: [(1500, bits_of(0.0))],
}


UP = [LabelMatcher(name="__name__", value="up")]


Result = TypeVar("Result")


Talk = Callable[[Served], Awaitable[Result]]


def talk(
    queries: ReadQueries,
    conversation: Talk[Result],
    *,
    mask: SecretMask | None = None,
    limits: ConnectionLimits | None = None,
    memory: AnswerMemory | None = None,
    **settings: object,
) -> Result:
    """Serve these queries during a client's conversation."""

    async def test() -> Result:
        with closing(Workers(2)) as workers:
            routes = read_routes(queries, workers, QuerySettings.model_validate(settings), mask=mask)
            assert [(route.methods, route.access) for route in routes] == [(("POST",), Access.READ)]
            async with served(routes, max_body=MAX_BODY, limits=limits, memory=memory) as serving:
                return await conversation(serving)

    return in_loop(test())


class ReadResponse:
    """A complete response."""

    def __init__(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        self.status, self.headers, self.body = response.status, response.headers, body

    @property
    def text(self) -> str:
        assert self.headers["Content-Type"] == "text/plain; charset=utf-8"
        return self.body.decode()


def read(
    queries: ReadQueries, body: bytes, *, encoding: str = "snappy", parameters: str = "", **settings: object
) -> ReadResponse:
    return talk(queries, lambda serving: posted(serving, io.BytesIO(body), encoding, parameters), **settings)


async def posted(serving: Served, body: object, encoding: str = "snappy", parameters: str = "") -> ReadResponse:
    headers = {"Content-Encoding": encoding, "Content-Type": "application/x-protobuf"}
    async with serving.client.post(f"/api/v1/read{parameters}", data=body, headers=headers) as response:
        return ReadResponse(response, await response.read())


def one_query(*accepted: int, start: int = 0, end: int = 10_000, **fields: object) -> bytes:
    return packed_request([Query(start_timestamp_ms=start, end_timestamp_ms=end, matchers=UP, **fields)], accepted)
