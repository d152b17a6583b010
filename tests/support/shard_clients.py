"""Clients of shards with the answers of a test, and the queries to them."""

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.answer_memory import AnswerMemory, MemoryLease
from strandline.node.query.answers import (
    Answer,
    BucketsAnswer,
    SeriesAnswer,
)
from strandline.node.query.frames import decode_frame
from strandline.node.query.index_version import IndexVersion
from strandline.node.query.queries import (
    QueryScope,
)
from strandline.node.query.request_messages import request_of
from strandline.node.query.shard_queries import ShardQueries
from strandline.node.query.shard_requests import (
    BucketsRequest,
    SeriesRequest,
    ShardRequest,
)
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.node.workers import Workers
from support.links import Loop
from support.packed_lookups import PackedLookup

BUCKETS = BucketsRequest(None, 5)


EVERY = SeriesRequest(((Matcher("job", MatchOp.MATCH, ".+"),),), None, 5)


AnswerRequest = Callable[[ShardRequest, MemoryLease], Awaitable[Answer]]


def series(*values: str) -> SeriesAnswer:
    keys = [encode_part_key({"job": value}) for value in values]
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    return SeriesAnswer(KeyBytes(offsets, np.frombuffer(b"".join(keys), dtype=np.uint8)), more=False)


def answering(answer: Answer) -> AnswerRequest:
    async def answer_request(_request: ShardRequest, _memory: MemoryLease) -> Answer:
        return answer

    return answer_request


def raising(error: Exception) -> AnswerRequest:
    async def answer_request(_request: ShardRequest, _memory: MemoryLease) -> Answer:
        raise error

    return answer_request


class HeldAnswer:
    """An answer that waits until the test sets `over`."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.begun, self.over, self.cancelled = answer, asyncio.Event(), asyncio.Event(), 0

    async def __call__(self, _request: ShardRequest, _memory: MemoryLease) -> Answer:
        self.begun.set()
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.answer


class Client:
    """A `ShardClient` with the answers of a test."""

    def __init__(
        self, answer_request: AnswerRequest, lookup_answer: Answer | None = None, version: IndexVersion | None = None
    ) -> None:
        self.answer_request, self.lookup_answer, self.version = answer_request, lookup_answer, version
        self.requests: list[tuple[ShardRequest, float]] = []
        self.lookups: list[PackedLookup] = []

    async def look_up(self, frame: bytes, _memory: MemoryLease) -> Answer | None:
        self.lookups.append(PackedLookup.of(frame))
        return self.lookup_answer

    async def request(self, frame: bytes, memory: MemoryLease) -> Answer:
        self.requests.append(request_of(decode_frame(bytearray(frame))))
        return await self.answer_request(self.requests[-1][0], memory)

    def index_version(self) -> IndexVersion | None:
        return self.version


class Node:
    """Shards from 0 on, and the queries to them."""

    def __init__(self, loop: Loop, *clients: Client, concurrency: int = 4, memory: int = 1 << 30) -> None:
        self.loop, self.memory, self.workers = loop, AnswerMemory(memory), Workers(1)
        self.clients = dict(enumerate(clients))
        self.statuses = tuple(ShardProcessStatus(shard, ProcessState.RUNNING) for shard in self.clients)
        self.topic_partitions: int | None = len(clients)
        self.queries = ShardQueries(lambda: self.clients, self, self.workers, concurrency=concurrency)

    def partitions(self) -> int | None:
        return self.topic_partitions

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        return self.statuses

    def scope(self, seconds: float = 30.0) -> QueryScope:
        return QueryScope(seconds, self.memory.lease())

    def series(self, request: SeriesRequest = EVERY, seconds: float = 30.0) -> SeriesAnswer:
        return self.loop.run(self.queries.series(request, self.scope(seconds)))

    def buckets(self, seconds: float = 30.0) -> BucketsAnswer:
        return self.loop.run(self.queries.buckets(BUCKETS, self.scope(seconds)))
