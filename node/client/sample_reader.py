"""Reads samples from nodes by remote read, to verify bulk jobs."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus

import numpy as np

from strandline.jobs.verifying.comparing import KeyedSamples
from strandline.jobs.verifying.imports import NotReadable, WantedSeries
from strandline.node.client.envelope import Reply, error_from
from strandline.node.client.errors import NodeRefused
from strandline.node.client.node_client import NodeClient
from strandline.node.client.notation import single_line
from strandline.node.client.remote_read_client import READ_HEADERS, decode_results, encode_query
from strandline.node.client.series_source import NodeAccess
from strandline.time_range import TimeRange
from strandline.wire.columns import Columns
from strandline.wire.snappy import compress, decompress

_MAX_BYTES = 1 << 30
_MAX_REASON_LENGTH = 500


@dataclass(frozen=True, slots=True)
class NodeSamples:
    """The `SampleReader` over nodes that together serve all partitions. Requests that are too large for a node are
    split.
    """

    nodes: tuple[NodeAccess, ...]

    def read(self, series: Sequence[WantedSeries]) -> KeyedSamples:
        """The samples of these series in their times, and of series with additional labels. Raises `NotReadable`."""
        found: list[KeyedSamples] = []
        for node in self.nodes:
            with closing(node.client()) as client:
                found += _read_split(client, series)
        return KeyedSamples.joined(found)


def _read_split(client: NodeClient, series: Sequence[WantedSeries]) -> Iterator[KeyedSamples]:
    queries = b"".join(encode_query(_pairs(one.labels), one.times) for one in series)
    reply = client.exchange("POST", "/api/v1/read?partial=node", compress(queries), READ_HEADERS)
    if reply.status == HTTPStatus.OK:
        yield _keyed(decode_results(decompress(reply.body, limit=_MAX_BYTES)))
    elif reply.status == HTTPStatus.UNPROCESSABLE_ENTITY and (halves := _halves(series)) is not None:
        for half in halves:
            yield from _read_split(client, half)
    else:
        raise _fault(reply)


def _halves(series: Sequence[WantedSeries]) -> tuple[Sequence[WantedSeries], Sequence[WantedSeries]] | None:
    """The series in two halves. A single series is split by time; None for a single time of a single series."""
    if len(series) > 1:
        return series[: len(series) // 2], series[len(series) // 2 :]
    (one,) = series
    times = one.times
    if times.first == times.last:
        return None
    middle = (times.first + times.last) // 2
    return (
        [WantedSeries(one.labels, TimeRange(times.first, middle))],
        [WantedSeries(one.labels, TimeRange(middle + 1, times.last))],
    )


def _fault(reply: Reply) -> NotReadable | Exception:
    reason = single_line(reply.body[:_MAX_REASON_LENGTH].decode(errors="replace"))
    match reply.status:
        case HTTPStatus.SERVICE_UNAVAILABLE | HTTPStatus.TOO_MANY_REQUESTS:
            return NotReadable(reason or f"the node at {reply.url} answered {reply.status}")
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return error_from(reply, None)
        case _:
            return NodeRefused(f"the node at {reply.url} answered {reply.status}: {reason}")


def _keyed(columns: Columns) -> KeyedSamples:
    counts = np.diff(columns.first_sample)
    low, high = np.repeat(columns.key_low, counts), np.repeat(columns.key_high, counts)
    return KeyedSamples(low, high, columns.time, columns.value.view(np.uint64))


def _pairs(labels: bytes) -> Iterator[tuple[str, str]]:
    """Names and values of labels in canonical form: length-prefixed messages with two string fields."""
    at = 0
    while at < len(labels):
        label, at = _field(labels, at)
        name, behind = _field(label, 0)
        value = _field(label, behind)[0] if behind < len(label) else b""
        yield name.decode(), value.decode()


def _field(data: bytes, at: int) -> tuple[bytes, int]:
    """The content of a length-prefixed field, and the position after it."""
    length, shift, at = 0, 0, at + 1
    while True:
        length |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return data[at : at + length], at + length
