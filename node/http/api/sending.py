"""Answers as responses: Prometheus' envelope around pieces of JSON, compressed for clients that accept it.

Short responses are made in the event loop. Of a long one, one block is in memory at a time: it is made and compressed
in a worker thread when the client has received the one before.
"""

import zlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson

from strandline.node.http.headers import accepts_gzip
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Fields, Response, StreamedResponse
from strandline.node.workers import Workers
from strandline.promql.go_text import as_utf8

_BLOCK = 1 << 20
# The block that the client is receiving, and the next one.
_BLOCKS_IN_MEMORY = 2
# The approximate ratio of an answer's text to its columns.
_TEXT_FACTOR = 2
# Columns of at most this many bytes are written in the event loop.
_MAX_INLINE = 64 << 10
# Bytes. Compressing less is not worth the cost.
_MIN_COMPRESSED = 4 << 10
# The lowest level: on most networks, a higher one takes longer than it saves.
_LEVEL = 1
_GZIP = 31
_BEGIN = b'{"status":"success","data":'
_VARY: Fields = (("Vary", "Accept-Encoding"),)
_GZIPPED: Fields = (*_VARY, ("Content-Encoding", "gzip"))


@dataclass(slots=True)
class Answer:
    """The data of an answer as JSON, in pieces; the approximate size of the columns it is made from; and warnings and
    infos.
    """

    data: Iterable[bytes]
    size: int
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()


async def respond(request: Request, workers: Workers, answer: Answer) -> AnyResponse:
    """The response with an answer. Raises what `MemoryLease.grow` raises if there is no room for its text."""
    gzip = accepts_gzip(request.headers.get("accept-encoding", ""))
    if answer.size <= _MAX_INLINE:
        return inline_response(answer, gzip=gzip)
    # The text is in memory besides the columns. Taken now, while the query can still be refused.
    reserved = min(_TEXT_FACTOR * answer.size, _BLOCKS_IN_MEMORY * _BLOCK)
    request.memory.grow(reserved)
    body = _Body(_blocks(answer), gzip=gzip)
    first = await workers.run(body.next)
    if body.is_over:
        return Response(first, headers=_headers(compressed=body.is_compressed), reserved=reserved)

    async def blocks() -> AsyncGenerator[bytes, None]:
        yield first
        while not body.is_over:
            yield await workers.run(body.next)

    return StreamedResponse(blocks(), headers=_headers(compressed=body.is_compressed), reserved=reserved)


def inline_response(answer: Answer, *, gzip: bool) -> Response:
    """The response with a short answer."""
    body = b"".join((_BEGIN, *answer.data, _end(answer)))
    if not gzip or len(body) < _MIN_COMPRESSED:
        return Response(body, headers=_VARY)
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return Response(compressor.compress(body) + compressor.flush(), headers=_GZIPPED)


def _headers(*, compressed: bool) -> Fields:
    return _GZIPPED if compressed else _VARY


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
    held.append(_end(answer))
    yield b"".join(held)


def _end(answer: Answer) -> bytes:
    return _messages("warnings", answer.warnings) + _messages("infos", answer.infos) + b"}"


def _messages(name: str, texts: Sequence[str]) -> bytes:
    if not texts:
        return b""
    # Distinct: several queries of a request may have the same warning.
    return b',"%s":%s' % (name.encode(), orjson.dumps([as_utf8(text) for text in dict.fromkeys(texts)]))


class _Body:
    """Blocks, compressed if the client accepts it and it is worth it. Reads one block ahead to know the last one. Used
    by one thread at a time.
    """

    def __init__(self, blocks: Iterator[bytes], *, gzip: bool) -> None:
        self._blocks, self._gzip = blocks, gzip
        self._ahead: bytes | None = None
        self._compressor: zlib._Compress | None = None
        self._has_begun = self.is_over = False

    @property
    def is_compressed(self) -> bool:
        """Known once the first block is made."""
        return self._compressor is not None

    def next(self) -> bytes:
        """The next block."""
        if not self._has_begun:
            self._has_begun = True
            self._ahead = next(self._blocks)
        block, self._ahead = self._ahead or b"", next(self._blocks, None)
        self.is_over = self._ahead is None
        if self._gzip and self._compressor is None:
            self._gzip = False
            if not self.is_over or len(block) >= _MIN_COMPRESSED:
                self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        if self._compressor is None:
            return block
        packed = self._compressor.compress(block)
        return packed + self._compressor.flush() if self.is_over else packed
