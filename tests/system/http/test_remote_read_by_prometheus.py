"""Remote read by a real Prometheus: its queries to our server, and a comparison of its own chunks with ours."""

import asyncio
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cramjam
import numpy as np
import pytest
import uvloop

from strandline.node.http.remote_read.handler import read_routes
from strandline.node.http.remote_read.kernels.xor_chunks import CHUNK_BYTES, put_chunk
from strandline.node.http.server import HttpServer
from strandline.node.query.shard_requests import SeriesRequest
from strandline.node.settings.http_sections import HttpSettings, QuerySettings
from strandline.node.workers import Workers
from strandline.wire.encoding import Series, encode_request
from support.prometheus import PrometheusClient, prometheus
from support.read_queries import ReadQueries
from support.remote_read import LabelMatcher, Labels, Query, Samples, bits_of, frames_of, labels_of, packed_request
from support.xor_chunks import read_chunk

pytestmark = pytest.mark.system

STALE = 0x7FF0000000000002
START = 1_700_000_000_000
STEP, COUNT = 15_000, 240  # An hour.
END = START + STEP * (COUNT - 1)
MANY = 5000
TIMES = [START + STEP * place for place in range(COUNT)]


def named(name: str, **labels: str) -> Labels:
    return tuple(sorted({"__name__": name, **labels}.items()))


def held() -> dict[Labels, Samples]:
    series = {
        # A counter that rises by two a second, and one by three.
        named("requests_total", job="a"): [(time, bits_of(2.0 * (time - START) / 1000)) for time in TIMES],
        named("requests_total", job="b"): [(time, bits_of(3.0 * (time - START) / 1000)) for time in TIMES],
        # One series ends half-way with a marker, another one without.
        named("up", job="a"): [(time, bits_of(1.0)) for time in TIMES[:120]] + [(TIMES[120], STALE)],
        named("up", job="b"): [(time, bits_of(1.0)) for time in TIMES[:120]],
        named("odd", kind="infinite"): [(time, bits_of(math.inf)) for time in TIMES],
        named("odd", kind="nan"): [(time, bits_of(math.nan)) for time in TIMES],
        named("odd", kind="tiny"): [(time, bits_of(-5e-324)) for time in TIMES],
        named("odd", kind="größe"): [(time, bits_of(-0.5)) for time in TIMES],
    }
    for number in range(MANY):
        series[named("many", number=str(number))] = [(time, bits_of(float(number))) for time in TIMES[:20]]
    return series


@contextmanager
def serving(queries: ReadQueries) -> Iterator[str]:
    """Our server with these answers, in a separate thread. Yields its address."""
    started, stop, url = threading.Event(), asyncio.Event(), []
    loop = uvloop.new_event_loop()

    async def serve() -> None:
        workers = Workers(2)
        routes = read_routes(queries, workers, QuerySettings())
        server = HttpServer(routes, HttpSettings(), "127.0.0.1:0", max_body=1 << 20)
        url.append((await server.start()).url)
        started.set()
        await stop.wait()
        await server.stop(1)
        workers.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert started.wait(30)
        yield url[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def reads(url: str) -> Callable[[str], dict[str, Any]]:
    """The settings of a Prometheus that reads from this server."""
    return lambda _: {"remote_read": [{"url": url, "read_recent": True}]}


@pytest.fixture(scope="module")
def queries() -> ReadQueries:
    return ReadQueries(held())


@pytest.fixture(scope="module")
def reading(queries: ReadQueries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusClient]:
    """A Prometheus without own data that reads ours."""
    home = tmp_path_factory.mktemp("reading") / "home"
    with serving(queries) as url, prometheus(home, reads(f"{url}/api/v1/read")) as started:
        yield started


def test_selectors_return_the_values_at_their_time(reading: PrometheusClient) -> None:
    half = TIMES[100]
    assert reading.query("requests_total", half) == {
        named("requests_total", job="a"): 2.0 * 1500,
        named("requests_total", job="b"): 3.0 * 1500,
    }
    assert reading.query('requests_total{job!="a"}', half + 7000) == {named("requests_total", job="b"): 4500.0}
    assert reading.query('{__name__=~"req.*|up",job!~"b|c"}', half) == {
        named("requests_total", job="a"): 3000.0,
        named("up", job="a"): 1.0,
    }
    assert reading.query("none", half) == {}


def test_a_series_ends_at_its_staleness_marker_or_after_the_lookback(reading: PrometheusClient) -> None:
    assert reading.query("up", TIMES[120] - 1).keys() == {named("up", job="a"), named("up", job="b")}
    assert reading.query("up", TIMES[120]).keys() == {named("up", job="b")}
    assert reading.query("up", TIMES[119] + 300_001) == {}


def test_functions_over_ranges_return_the_expected_values(reading: PrometheusClient) -> None:
    assert reading.query("rate(requests_total[10m])", END) == {(("job", "a"),): 2.0, (("job", "b"),): 3.0}
    assert reading.query("sum(increase(requests_total[30m]))", END) == {(): 5.0 * 1800}
    # Both ends of the range count: 41 samples in ten minutes.
    assert reading.query('count_over_time(requests_total{job="a"}[10m])', END) == {(("job", "a"),): 41.0}
    # A marker is not a value.
    assert reading.query('count_over_time(up{job="a"}[1h])', END) == {(("job", "a"),): 120.0}


def test_special_values_are_unchanged(reading: PrometheusClient) -> None:
    found = {dict(labels)["kind"]: value for labels, value in reading.query("odd", END).items()}
    assert math.isnan(found.pop("nan"))
    assert found == {"infinite": math.inf, "tiny": -5e-324, "größe": -0.5}


def test_a_range_query_returns_every_point(reading: PrometheusClient) -> None:
    found = reading.data(
        "/api/v1/query_range",
        query='requests_total{job="a"}',
        start=START / 1000,
        end=END / 1000,
        step=STEP / 1000,
    )
    (series,) = found["result"]
    assert series["values"] == [[time / 1000, f"{2 * (time - START) // 1000}"] for time in TIMES]


def test_an_answer_of_many_series_arrives_completely(reading: PrometheusClient) -> None:
    """The answer has several frames."""
    assert reading.query("count(many)", TIMES[10]) == {(): float(MANY)}
    assert reading.query("sum(many)", TIMES[10]) == {(): MANY * (MANY - 1) / 2}
    assert reading.query("sum(count_over_time(many[1h]))", TIMES[30]) == {(): 20.0 * MANY}


def test_series_are_listed_without_reading_their_samples(reading: PrometheusClient, queries: ReadQueries) -> None:
    before = len(queries.requests)
    found = reading.data("/api/v1/series", match="up", start=START / 1000, end=END / 1000)
    assert [tuple(sorted(series.items())) for series in found] == [named("up", job="a"), named("up", job="b")]
    assert all(isinstance(ask, SeriesRequest) for ask in queries.requests[before:])


def test_a_partial_answer_is_a_warning_in_prometheus_and_no_data(tmp_path: Path) -> None:
    partial = ReadQueries(held(), ("shard 1 is recovering",))
    with serving(partial) as url:
        with prometheus(tmp_path / "strict", reads(f"{url}/api/v1/read")) as strict:
            found = strict.document("/api/v1/query", query="up", time=TIMES[100] / 1000)
            assert found["data"]["result"] == []
            assert "503" in found["warnings"][0]
            assert "the answer may be partial: shard 1 is recovering" in found["warnings"][0]
        with prometheus(tmp_path / "lenient", reads(f"{url}/api/v1/read?partial=allow")) as lenient:
            assert len(lenient.query("up", TIMES[100])) == 2


def encoded(samples: Sequence[tuple[int, int]]) -> bytes:
    time = np.array([time for time, _ in samples], dtype=np.int64)
    value = np.array([value for _, value in samples], dtype=np.uint64)
    out = np.empty(CHUNK_BYTES, dtype=np.uint8)
    end = put_chunk(out.ctypes.data, time.ctypes.data, value.ctypes.data, len(samples))
    return out[: end - out.ctypes.data].tobytes()


def test_prometheus_encodes_the_same_samples_to_the_same_chunks(tmp_path: Path) -> None:
    """Regular and irregular times, counters, noise, equal values, markers: written to Prometheus, and read back as a
    stream.
    """
    rng = np.random.default_rng(7)
    ragged = np.cumsum(rng.choice([1, 14_999, 15_000, 15_001, 30_000, 140_000], COUNT)) % 3_600_000
    times = {"steady": TIMES, "ragged": [START + int(time) for time in np.unique(ragged)]}
    values = {
        "same": np.full(COUNT, 7.0),
        "counter": np.cumsum(rng.integers(0, 50, COUNT)).astype(np.float64),
        "noise": rng.normal(size=COUNT),
        "bits": rng.integers(0, 2**64, COUNT, dtype=np.uint64).view(np.float64),
        "marked": np.where(np.arange(COUNT) % 5, 1.0, np.uint64(STALE).view(np.float64)),
    }
    written = {
        named("chunked", times=kind, values=how): list(zip(times[kind], values[how].tolist(), strict=False))
        for kind in times
        for how in values
    }
    body = encode_request(Series(labels, samples) for labels, samples in written.items())
    with prometheus(tmp_path / "home", lambda _: {}, "--web.enable-remote-write-receiver") as receiving:
        receiving.post("/api/v1/write", bytes(cramjam.snappy.compress_raw(body)))
        query = Query(
            start_timestamp_ms=START,
            end_timestamp_ms=START + 3_700_000,
            matchers=[LabelMatcher(name="__name__", value="chunked")],
        )
        body = receiving.post("/api/v1/read", packed_request([query], [1]))
    found: dict[Labels, Samples] = {}
    for frame in frames_of(body):
        for series in frame.chunked_series:
            for chunk in series.chunks:
                samples = read_chunk(chunk.data)
                # Prometheus begins the next byte if the last one is full.
                assert chunk.data in (encoded(samples), encoded(samples) + b"\0")
                found.setdefault(labels_of(series), []).extend(samples)
    assert found == {labels: [(time, bits_of(value)) for time, value in samples] for labels, samples in written.items()}
