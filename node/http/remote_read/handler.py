"""The handler of `POST /api/v1/read`.

The protocol has no warnings. So an answer that may be partial, because a shard is recovering or does not answer, is
refused with 503 and the reason. Prometheus treats remote storage as secondary: on a 503, it answers the query from its
other sources, and adds our text to the warnings of its answer, which Grafana shows. A client that accepts partial
answers uses the URL `/api/v1/read?partial=allow`. A URL can be configured in every client, but not every Prometheus
sends configured headers. Answers then have the warnings in the header `X-Strandline-Warnings`. A client that reads from
all nodes of a dataset uses `?partial=node`: partitions that the node does not serve are then no reason to refuse.

For times further back than `shard.late_by`, answers may lack samples that came even later. These answers are not
refused, and have that header, too.

Staleness markers are sent like other samples, since PromQL interprets them.

Errors are plain text with the status of `strandline.node.http.errors`, as in Prometheus' handler. An error after the
first byte of an answer closes the connection before the end of the body, which a client of HTTP/1.1 can distinguish
from a complete answer.
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

_MAX_HEADER = 2000
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
    """The route of remote read. Error texts are masked."""
    reader = _Reader(queries, workers, settings, mask or SecretMask())
    return (Route(("POST",), "/api/v1/read", reader.read, Access.READ),)


class _Partial(StrEnum):
    """Which answers a client accepts: only of the whole dataset (DENY), of all that this node serves (NODE), or any."""

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
    """The `partial` parameter. Raises `BadParameter` for an unknown value."""
    given = parameters_of_url(request).text(PARTIAL_PARAMETER) or _Partial.DENY.value
    try:
        return _Partial(given)
    except ValueError:
        remedy = "Use allow, deny or node"
        raise BadParameter(f"{PARTIAL_PARAMETER}={given:.50} is not a valid value", remedy=remedy) from None


async def _body(request: Request) -> bytes:
    """The request's body. Raises `Refused` if it is too large, or not compressed with snappy."""
    encoding = request.headers.get("content-encoding", "snappy")
    if encoding.lower() != "snappy":
        raise Refused(415, "bad_data", f"a read request must be compressed with snappy, not {encoding!r:.50}")
    return await request.body.read()


def _header_text(warnings: tuple[str, ...]) -> str:
    """Warnings in one line of plain ASCII."""
    line = " ".join("; ".join(warnings).split())
    return line.encode("ascii", "replace").decode()[:_MAX_HEADER]
