"""The handler of `POST /api/v1/read`.

The protocol has no place for warnings. So an answer that may be partial, because a shard is still recovering or does
not answer, is refused with 503 and the reason, rather than sent as though it were whole. Prometheus takes remote
storage for secondary: on a 503 it answers the query from what else it has, with our text among the warnings of its
answer, which Grafana shows. A client that would rather have what there is says so in the URL,
`/api/v1/read?partial=allow`: every client can be given a URL, while not every Prometheus sends the headers that it is
told to. Answers then carry the warnings in the header `X-Strandline-Warnings`.

Staleness markers are samples as all others here: what they mean is PromQL's to say.

Errors are plain text with the status that `strandline.node.http.errors` has for them, as Prometheus' own handler
answers. Once the first byte of an answer is out, what goes wrong can only be shown by breaking off: the connection is
closed before the end of the body, which a client of HTTP/1.1 can tell from a short answer.
"""

import asyncio
from collections.abc import Iterator

import structlog
from aiohttp import web

from strandline.errors import StrandlineError
from strandline.node.http.errors import BadParameter, Refused, fault_of
from strandline.node.http.remote_read.asking import ask, require_whole
from strandline.node.http.remote_read.requests import ReadRequest, ResponseType, decode_request
from strandline.node.http.remote_read.sampled import sampled_parts
from strandline.node.http.remote_read.streamed import streamed_parts
from strandline.node.http.routes import Access, Route
from strandline.node.http.working import Workers
from strandline.node.masking import SecretMask
from strandline.node.query.queries import Cancellation, NodeQueries
from strandline.node.settings.http_sections import QuerySettings

log = structlog.get_logger(__name__)

MAX_BODY = 4 << 20
PARTIAL_PARAMETER, WARNINGS_HEADER = "partial", "X-Strandline-Warnings"

_LONGEST_HEADER = 2000
_HEADERS = {
    ResponseType.SAMPLES: {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"},
    ResponseType.STREAMED_XOR_CHUNKS: {
        "Content-Type": "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"
    },
}


def read_routes(
    queries: NodeQueries, workers: Workers, settings: QuerySettings, *, mask: SecretMask | None = None
) -> tuple[Route, ...]:
    """Remote read. Errors' texts pass the mask."""
    reader = _Reader(queries, workers, settings, mask or SecretMask())
    return (Route(("POST",), "/api/v1/read", reader.read, Access.READ),)


class _Reader:
    def __init__(self, queries: NodeQueries, workers: Workers, settings: QuerySettings, mask: SecretMask) -> None:
        self._queries, self._workers, self._settings, self._mask = queries, workers, settings, mask

    async def read(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        try:
            allow_partial = _allows_partial(request)
            asked = decode_request(await _body(request))
            warnings, parts = await self._workers.run(
                lambda cancellation: self._answer(asked, cancellation, allow_partial=allow_partial)
            )
        except StrandlineError as error:
            return self._refusal(request, error)
        response = web.StreamResponse(headers=_HEADERS[asked.response_type])
        if warnings:
            response.headers[WARNINGS_HEADER] = self._mask.text(_header_text(warnings))
        await response.prepare(request)
        try:
            await self._send(response, parts)
        except ConnectionError:
            # The client went away, as clients do. The connection is closed: nothing more is sent on it.
            pass
        except (StrandlineError, TimeoutError) as error:
            log.warning("remote read broken off", remote=request.remote, reason=str(error) or "its client stalled")
            if request.transport is not None:
                request.transport.abort()
        return response

    def _answer(
        self, asked: ReadRequest, cancellation: Cancellation, *, allow_partial: bool
    ) -> tuple[tuple[str, ...], Iterator[bytes]]:
        """In a worker's thread: what the answer may lack, and the parts of its body."""
        answer = ask(asked, self._queries, self._settings, cancellation)
        if not allow_partial:
            require_whole(answer)
        parts = sampled_parts if asked.response_type is ResponseType.SAMPLES else streamed_parts
        return answer.warnings, parts(answer.columns)

    async def _send(self, response: web.StreamResponse, parts: Iterator[bytes]) -> None:
        """Make a part in a thread, send it, wait until the socket has taken most of it, make the next one. A client
        that takes nothing for as long as a query may take is given up, and so are the answers that wait for it.
        """
        while (part := await self._workers.run(lambda _: next(parts, None))) is not None:
            async with asyncio.timeout(self._settings.timeout.seconds):
                await response.write(part)
        await response.write_eof()

    def _refusal(self, request: web.Request, error: StrandlineError) -> web.Response:
        fault = fault_of(error)
        response = web.Response(status=fault.status, text=self._mask.text(fault.text) + "\n", headers=fault.headers)
        if not request.content.is_eof():
            # Whatever the client still sends is not wanted.
            response.force_close()
        return response


def _allows_partial(request: web.Request) -> bool:
    """Whether the client takes a part for the answer. Raises `BadParameter` for words that say neither."""
    said = request.query.get(PARTIAL_PARAMETER, "deny")
    if said not in ("allow", "deny"):
        raise BadParameter(f"{PARTIAL_PARAMETER}={said:.50} means nothing here", remedy="Write allow or deny")
    return said == "allow"


async def _body(request: web.Request) -> bytes:
    """The request's body. Raises `Refused` if it is too large, or packed in another way."""
    encoding = request.headers.get("Content-Encoding", "snappy")
    if encoding.lower() != "snappy":
        raise Refused(415, "bad_data", f"a read request is packed with snappy, not {encoding!r:.50}")
    parts, size = [], 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > MAX_BODY:
            raise Refused(413, "too_large", f"the read request is larger than {MAX_BODY} bytes", remedy="Ask for less")
        parts.append(part)
    return b"".join(parts)


def _header_text(warnings: tuple[str, ...]) -> str:
    """Warnings in one line of plain ASCII."""
    line = " ".join("; ".join(warnings).split())
    return line.encode("ascii", "replace").decode()[:_LONGEST_HEADER]
