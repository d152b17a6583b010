"""The handler of `POST /api/v1/read`.

The protocol has no place for warnings. So an answer that may be partial, because a shard is still recovering or does
not answer, is refused with 503 and the reason, rather than sent as though it were whole. Prometheus takes remote
storage for secondary: on a 503 it answers the query from what else it has, with our text among the warnings of its
answer, which Grafana shows. A client that would rather have what there is says so in the URL,
`/api/v1/read?partial=allow`: every client can be given a URL, while not every Prometheus sends the headers that it is
told to. Answers then carry the warnings in the header `X-Strandline-Warnings`. A client that reads from all nodes of a
dataset says `?partial=node`: partitions that the node does not serve are no reason to refuse then.

Of times that lie further back than `shard.late_by` before what a shard has read, answers may lack samples that came
even later; these are not refused, and have that header, too.

Staleness markers are samples as all others here: what they mean is PromQL's to say.

Errors are plain text with the status that `strandline.node.http.errors` has for them, as Prometheus' own handler
answers. Once the first byte of an answer is out, what goes wrong can only be shown by breaking off: the connection is
closed before the end of the body, which a client of HTTP/1.1 can tell from a short answer.
"""

from collections.abc import AsyncGenerator
from enum import StrEnum

from strandline.errors import StrandlineError
from strandline.node.http.api.names import limited_scope
from strandline.node.http.errors import BadParameter, Refused, fault_of
from strandline.node.http.parameters import parameters_of_url
from strandline.node.http.remote_read.read_execution import execute, require_complete
from strandline.node.http.remote_read.requests import ResponseType, decode_request
from strandline.node.http.remote_read.sampled import sampled_parts
from strandline.node.http.remote_read.streamed import PART_BYTES, streamed_parts
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse, Fields, Response, StreamedResponse
from strandline.node.http.routes import Access, Route
from strandline.node.masking import SecretMask
from strandline.node.query.queries import NodeQueries
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers

MAX_BODY = 4 << 20
PARTIAL_PARAMETER, WARNINGS_HEADER = "partial", "X-Strandline-Warnings"

_LONGEST_HEADER = 2000
_TYPES = {
    ResponseType.SAMPLES: "application/x-protobuf",
    ResponseType.STREAMED_XOR_CHUNKS: "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse",
}
_ENCODINGS: dict[ResponseType, Fields] = {
    ResponseType.SAMPLES: (("Content-Encoding", "snappy"),),
    ResponseType.STREAMED_XOR_CHUNKS: (),
}


def read_routes(
    queries: NodeQueries, workers: Workers, settings: QuerySettings, *, mask: SecretMask | None = None
) -> tuple[Route, ...]:
    """Remote read. Errors' texts pass the mask."""
    reader = _Reader(queries, workers, settings, mask or SecretMask())
    return (Route(("POST",), "/api/v1/read", reader.read, Access.READ),)


class _Partial(StrEnum):
    """Which answers a client accepts: only those of the whole dataset, all that this node should have, or any."""

    DENY = "deny"
    NODE = "node"
    ALLOW = "allow"


class _Reader:
    def __init__(self, queries: NodeQueries, workers: Workers, settings: QuerySettings, mask: SecretMask) -> None:
        self._queries, self._workers, self._settings, self._mask = queries, workers, settings, mask

    async def read(self, request: Request) -> AnyResponse:
        """Answer a request."""
        try:
            partial = _partial(request)
            read_request = decode_request(await _body(request))
            scope = limited_scope(request, self._settings.timeout.seconds)
            answer = await execute(read_request, self._queries, self._settings, scope)
            if partial is not _Partial.ALLOW:
                require_complete(answer, self._queries.unserved(), of_dataset=partial is _Partial.DENY)
            make = sampled_parts if read_request.response_type is ResponseType.SAMPLES else streamed_parts
            reserved = min(PART_BYTES, request.memory.held)
            request.memory.grow(reserved)
            parts = await self._workers.run(lambda: make(answer.columns))
        except StrandlineError as error:
            fault = fault_of(error).masked(self._mask)
            return Response.text(fault.text + "\n", status=fault.status, headers=fault.headers)
        headers = _ENCODINGS[read_request.response_type]
        if answer.warnings:
            headers += ((WARNINGS_HEADER, self._mask.text(_header_text(answer.warnings))),)

        async def blocks() -> AsyncGenerator[bytes, None]:
            while (part := await self._workers.run(lambda: next(parts, None))) is not None:
                yield part

        return StreamedResponse(blocks(), _TYPES[read_request.response_type], headers, reserved=reserved)


def _partial(request: Request) -> "_Partial":
    """Which part the client accepts for the answer. Raises `BadParameter` for a value that says none."""
    given = parameters_of_url(request).text(PARTIAL_PARAMETER) or _Partial.DENY.value
    try:
        return _Partial(given)
    except ValueError:
        remedy = "Write allow, deny or node"
        raise BadParameter(f"{PARTIAL_PARAMETER}={given:.50} means nothing here", remedy=remedy) from None


async def _body(request: Request) -> bytes:
    """The request's body. Raises `Refused` if it is too large, or packed in another way."""
    encoding = request.headers.get("content-encoding", "snappy")
    if encoding.lower() != "snappy":
        raise Refused(415, "bad_data", f"a read request is packed with snappy, not {encoding!r:.50}")
    return await request.body.read()


def _header_text(warnings: tuple[str, ...]) -> str:
    """Warnings in one line of plain ASCII."""
    line = " ".join("; ".join(warnings).split())
    return line.encode("ascii", "replace").decode()[:_LONGEST_HEADER]
