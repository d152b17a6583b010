"""A client of remote read: all samples of a selector in a range of times, as columns.

A `QueryResult` has the wire format of a `WriteRequest` (series with labels and samples), so that the kernels for
writes can decode it.
"""

import http.client
from collections.abc import Iterable, Iterator

import numpy as np

from strandline.errors import Retryable
from strandline.time_range import TimeRange
from strandline.wire.columns import Columns
from strandline.wire.decode import Decoder, Limits, Unpacked
from strandline.wire.encoding import field, varint
from strandline.wire.snappy import compress, decompress

_QUERIES, _START, _END, _MATCHERS = 0x0A, b"\x08", b"\x10", 0x1A
_NAME, _VALUE, _RESULTS = 0x12, 0x1A, 0x0A
_MAX_BYTES = 1 << 30
READ_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Read-Version": "0.1.0",
}


class NotRead(Retryable):
    """The samples could not be read from the node."""


def read_samples(address: str, label: str, value: str, times: TimeRange) -> Columns:
    """The samples of all series in which this label has this value. Raises `NotRead`."""
    connection = http.client.HTTPConnection(address, timeout=120)
    try:
        connection.request("POST", "/api/v1/read", compress(encode_read(label, value, times)), READ_HEADERS)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise NotRead(f"reading from the node at {address} failed: {error}") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise NotRead(f"the node answered {answer.status}: {body[:300].decode(errors='replace')}")
    return decode_result(decompress(body, limit=_MAX_BYTES))


def encode_read(label: str, value: str, times: TimeRange) -> bytes:
    """A `ReadRequest` of one query with one equality matcher, for an answer as samples."""
    return encode_query([(label, value)], times)


def encode_query(labels: Iterable[tuple[str, str]], times: TimeRange) -> bytes:
    """A query with equality matchers. The concatenation of several is a valid `ReadRequest`."""
    matchers = (
        field(_MATCHERS, field(_NAME, label.encode()) + field(_VALUE, value.encode())) for label, value in labels
    )
    return field(_QUERIES, _START + varint(times.first) + _END + varint(times.last) + b"".join(matchers))


def decode_result(response: bytes) -> Columns:
    """The single result of a `ReadResponse`. Raises `NotRead` for anything else."""
    results = list(_results(response))
    if len(results) > 1:
        raise NotRead("the node's answer is not the answer to one query")
    return _columns(b"".join(results))


def decode_results(response: bytes) -> Columns:
    """All results of a `ReadResponse` together: their concatenation has the format of one request. Raises `NotRead`."""
    return _columns(b"".join(_results(response)))


def _results(response: bytes) -> Iterator[bytes]:
    behind = 0
    while behind < len(response):
        tag, length, at, shift = response[behind], 0, behind + 1, 0
        while at < len(response):
            length |= (response[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if response[at - 1] < 0x80:
                break
        behind = at + length
        if tag != _RESULTS or behind > len(response):
            raise NotRead("the node's answer is not the answer to one query")
        yield response[at:behind]


def _columns(result: bytes) -> Columns:
    data = np.frombuffer(result, dtype=np.uint8)
    columns = Decoder(Limits()).decode_unpacked(Unpacked(data, np.array([0, len(data)], dtype=np.int64), {}))
    if columns.faults:
        raise NotRead(f"the node's answer can't be decoded: {columns.faults[0].reason}")
    return columns
