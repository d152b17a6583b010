"""Reading samples by remote read: large requests are split, and errors are reported."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from strandline.jobs.verifying.imports import NotReadable, WantedSeries
from strandline.node.client.addresses import parse_url
from strandline.node.client.errors import AccessDenied, NodeRefused
from strandline.node.client.remote_read_client import encode_query
from strandline.node.client.sample_reader import NodeSamples
from strandline.node.client.series_source import NodeAccess
from strandline.time_range import TimeRange
from strandline.wire.encoding import Series, encode_request, field
from strandline.wire.snappy import compress, decompress
from support.sample_blocks import canonical_labels, series_columns

pytestmark = pytest.mark.unit

LABELS = [[("__name__", "m"), ("host", f"hö-{number}")] for number in range(4)]
Answer = Callable[[bytes], tuple[int, bytes]]


@contextmanager
def answering(answer: Answer) -> Iterator[NodeSamples]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = answer(decompress(self.rfile.read(int(self.headers["Content-Length"])), limit=1 << 20))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not shown."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield NodeSamples((NodeAccess(parse_url(f"http://127.0.0.1:{server.server_port}")),))
        finally:
            server.shutdown()
            thread.join()


def selected(*numbers: int, last: int = 9) -> list[WantedSeries]:
    return [WantedSeries(canonical_labels(LABELS[number]), TimeRange(0, last)) for number in numbers]


def test_series_are_requested_by_all_labels_and_returned_with_their_hashes() -> None:
    requests: list[bytes] = []

    def answer(request: bytes) -> tuple[int, bytes]:
        requests.append(request)
        results = [encode_request([Series(labels, [(5, 1.5), (6, 2.5)])]) for labels in LABELS[:2]]
        return 200, compress(b"".join(field(0x0A, result) for result in results))

    with answering(answer) as reader:
        samples = reader.read(selected(0, 1))
    assert requests == [b"".join(encode_query(LABELS[number], TimeRange(0, 9)) for number in (0, 1))]
    keys = series_columns(LABELS[:2])
    assert samples.low.tolist() == np.repeat(keys.key_low, 2).tolist()
    assert samples.high.tolist() == np.repeat(keys.key_high, 2).tolist()
    assert (samples.time.tolist(), samples.bits.view(np.float64).tolist()) == ([5, 6, 5, 6], [1.5, 2.5, 1.5, 2.5])


def test_a_request_that_is_too_large_is_divided_by_series_and_then_by_time() -> None:
    requests: list[bytes] = []

    def answer(request: bytes) -> tuple[int, bytes]:
        requests.append(request)
        fits = len(request) < 40 and encode_query(LABELS[0], TimeRange(0, 9)) != request
        return (200, compress(field(0x0A, b""))) if fits else (422, b"too many samples")

    with answering(answer) as reader:
        assert len(reader.read(selected(0, 1))) == 0
    halves = [encode_query(LABELS[0], TimeRange(0, 4)), encode_query(LABELS[0], TimeRange(5, 9))]
    assert requests[1:] == [encode_query(LABELS[0], TimeRange(0, 9)), *halves, encode_query(LABELS[1], TimeRange(0, 9))]
    with (
        answering(lambda _: (422, b"too many samples")) as reader,
        pytest.raises(NodeRefused, match="too many samples"),
    ):
        reader.read(selected(0, last=1))


@pytest.mark.parametrize(("status", "error"), [(503, NotReadable), (401, AccessDenied), (500, NodeRefused)])
def test_errors_of_reading_samples_are_reported(status: int, error: type[Exception]) -> None:
    with answering(lambda _: (status, b"shard 0 is replaying")) as reader, pytest.raises(error):
        reader.read(selected(0))
