"""Remote read, as its client: all samples of a selector in a range of times, as columns.

A `QueryResult` of the answer has the shape of a `WriteRequest`, series with labels and samples, so that the kernels
which decode what is written decode what is read.
"""

import http.client

import numpy as np

from strandline.errors import Retryable
from strandline.time_range import TimeRange
from strandline.wire.columns import Columns
from strandline.wire.decode import Decoder, Limits, Unpacked
from strandline.wire.encoding import field, varint
from strandline.wire.snappy import compress, decompress

_QUERIES, _START, _END, _MATCHERS = 0x0A, b"\x08", b"\x10", 0x1A
_NAME, _VALUE, _RESULTS = 0x12, 0x1A, 0x0A
_MOST_BYTES = 1 << 30
_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Read-Version": "0.1.0",
}


class NotRead(Retryable):
    """The node did not give the samples."""


def read_back(address: str, label: str, value: str, times: TimeRange) -> Columns:
    """The samples of all series whose label has this value. Raises `NotRead`."""
    connection = http.client.HTTPConnection(address, timeout=120)
    try:
        connection.request("POST", "/api/v1/read", compress(encode_read(label, value, times)), _HEADERS)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise NotRead(f"the node at {address} can't be read from: {error}") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise NotRead(f"the node answered {answer.status}: {body[:300].decode(errors='replace')}")
    return decode_result(decompress(body, limit=_MOST_BYTES))


def encode_read(label: str, value: str, times: TimeRange) -> bytes:
    """A `ReadRequest` of one query with one matcher, of equality, for an answer in samples."""
    matcher = field(_NAME, label.encode()) + field(_VALUE, value.encode())
    query = _START + varint(times.first) + _END + varint(times.last) + field(_MATCHERS, matcher)
    return field(_QUERIES, query)


def decode_result(response: bytes) -> Columns:
    """The one result of a `ReadResponse`. Raises `NotRead` for anything else."""
    if not response:
        return _columns(b"")
    length, at, shift = 0, 1, 0
    while at < len(response):
        length |= (response[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if response[at - 1] < 0x80:
            break
    if response[0] != _RESULTS or at + length != len(response):
        raise NotRead("the node's answer is no answer to one query")
    return _columns(response[at:])


def _columns(result: bytes) -> Columns:
    data = np.frombuffer(result, dtype=np.uint8)
    columns = Decoder(Limits()).decode_unpacked(Unpacked(data, np.array([0, len(data)], dtype=np.int64), {}))
    if columns.faults:
        raise NotRead(f"the node's answer can't be decoded: {columns.faults[0].reason}")
    return columns
