"""Sending answers: Prometheus' envelope around pieces of JSON, compressed for clients that take it.

The question is asked, and every piece written and compressed, in a worker thread. What fits into one block is sent
whole; of what does not, one block is in memory at a time, and the next is made when the client has taken it.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson
from aiohttp import web

from strandline.node.http.encodings import accepts_gzip
from strandline.node.http.whole import Whole, json_headers
from strandline.node.http.working import Workers
from strandline.node.query.queries import Cancellation

_BLOCK = 1 << 20
# Less than this is not worth a compressor.
_COMPRESSED_FROM = 4 << 10
# The lowest level: the network here is mostly as fast as the next one would be.
_LEVEL = 1
_GZIP = 31
_BEGIN = b'{"status":"success","data":'
# How long a client may take nothing of an answer.
_TAKEN_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The data of an answer as JSON, in pieces, and what the client should know about it."""

    data: Iterable[bytes]
    warnings: tuple[str, ...] = ()
    may_be_kept: bool = False


Keep = Callable[[Whole], None]


async def send(
    request: web.Request,
    workers: Workers,
    work: Callable[[Cancellation], Answer],
    *,
    timeout_s: float | None = None,
    keep: Keep | None = None,
) -> web.StreamResponse:
    """Do the work in a thread, and send what it answers. `keep` is given what is sent whole and may be kept."""
    accepted = accepts_gzip(request.headers.get("Accept-Encoding", ""))

    def begin(cancellation: Cancellation) -> tuple[Answer, _Body, bytes]:
        answer = work(cancellation)
        body = _Body(_blocks(answer), gzip=accepted)
        return answer, body, body.next()

    answer, body, first = await workers.run(begin, timeout_s=timeout_s)
    if body.is_over():
        whole = Whole(first, body.is_compressed)
        if keep is not None and answer.may_be_kept:
            keep(whole)
        return whole.response()
    response = web.StreamResponse(headers=json_headers(compressed=body.is_compressed))
    response.enable_chunked_encoding()
    await response.prepare(request)
    await _write(request, response, first)
    while not body.is_over():
        await _write(request, response, await workers.run(lambda _: body.next()))
    await response.write_eof()
    return response


def whole_of(answer: Answer, *, gzip: bool) -> Whole:
    """All of an answer that is short."""
    return _whole(b"".join((_BEGIN, *answer.data, _end(answer.warnings))), gzip=gzip)


def whole_list(data: bytes, *, gzip: bool) -> Whole:
    """An answer with a short list, of which there is nothing to be said."""
    return _whole(b"%s%s}" % (_BEGIN, data), gzip=gzip)


def _whole(body: bytes, *, gzip: bool) -> Whole:
    if not gzip or len(body) < _COMPRESSED_FROM:
        return Whole(body, is_compressed=False)
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return Whole(compressor.compress(body) + compressor.flush(), is_compressed=True)


async def _write(request: web.Request, response: web.StreamResponse, block: bytes) -> None:
    try:
        async with asyncio.timeout(_TAKEN_WITHIN_S):
            await response.write(block)
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionAbortedError("the client takes nothing of the answer") from None


def _blocks(answer: Answer) -> Iterator[bytes]:
    held = [_BEGIN]
    size = 0
    for piece in answer.data:
        held.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield b"".join(held)
            held.clear()
            size = 0
    held.append(_end(answer.warnings))
    yield b"".join(held)


def _end(warnings: Sequence[str]) -> bytes:
    if not warnings:
        return b"}"
    # Each only once: every question of a request may have met the same shard.
    return b',"warnings":' + orjson.dumps(list(dict.fromkeys(warnings))) + b"}"


class _Body:
    """Blocks, compressed where that is wanted and worth it. It looks one block ahead to know the last."""

    def __init__(self, blocks: Iterator[bytes], *, gzip: bool) -> None:
        first = next(blocks)
        self._blocks = blocks
        self._held: bytes | None = first
        self._ahead = next(blocks, None)
        compress = gzip and (self._ahead is not None or len(first) >= _COMPRESSED_FROM)
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP) if compress else None

    @property
    def is_compressed(self) -> bool:
        return self._compressor is not None

    def is_over(self) -> bool:
        return self._held is None

    def next(self) -> bytes:
        """The next block."""
        block, self._held = self._held or b"", self._ahead
        self._ahead = next(self._blocks, None) if self._held is not None else None
        if self._compressor is None:
            return block
        packed = self._compressor.compress(block)
        return packed + self._compressor.flush() if self.is_over() else packed
