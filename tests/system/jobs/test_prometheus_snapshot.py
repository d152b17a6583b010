"""Snapshots by a real Prometheus of known samples, compared with the written samples and with the answers of
Prometheus.
"""

import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cramjam
import pytest
from pyarrow.fs import LocalFileSystem

from strandline.clock import SystemClock
from strandline.jobs.bad_records import BadRecords
from strandline.jobs.formats.prometheus_blocks import find_blocks, plan_ranges, read_range
from strandline.jobs.sample_block import SampleBlock
from support.prometheus import PrometheusClient, prometheus
from support.prometheus_blocks import STALE, uvarint
from support.remote_write import WriteRequest
from support.sample_blocks import Labels, TimedBits, samples_of

pytestmark = pytest.mark.system

SERIES, SAMPLES = 40, 700
OPTIONS = ("--web.enable-admin-api", "--web.enable-remote-write-receiver", "--enable-feature=native-histograms")
Written = dict[Labels, list[TimedBits]]


@dataclass(frozen=True)
class Snapshots:
    """A snapshot of a head, one of blocks with tombstones, the expected samples, and the answers of the second
    Prometheus.
    """

    written: Written
    first: Path
    left: Written
    second: Path
    answered: dict[Labels, list[tuple[int, float]]]


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def from_bits(number: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", number))[0])


def known_samples(start: int) -> Written:
    """Several chunks per series, with regular and irregular steps: constants, counters, noise, stale markers."""
    written: Written = {}
    for series in range(SERIES):
        labels = (("__name__", "known_total"), ("höhe", "größer"), ("series", f"{series:03d}"))
        times = [start + 1000 * number + (number * series * 37 % 400) for number in range(SAMPLES)]
        kind = (lambda _: 3.0, float, lambda n: n * series / 7, lambda n: (-1.0) ** n / (n + 1))[series % 4]  # noqa: B023
        found = [bits(kind(number)) for number in range(SAMPLES)]
        found[5], found[6] = bits(float("inf")), bits(-0.0)
        for stale in (17, 300, SAMPLES - 1):
            found[stale] = STALE
        written[labels] = list(zip(times, found, strict=True))
    return written


def write(receiver: PrometheusClient, written: Written) -> None:
    for begin in range(0, SAMPLES, 350):
        request = WriteRequest()
        for labels, samples in written.items():
            series = request.timeseries.add()
            for name, value in labels:
                series.labels.add(name=name, value=value)
            for time, number in samples[begin : begin + 350]:
                series.samples.add(value=from_bits(number), timestamp=time)
        receiver.post("/api/v1/write", bytes(cramjam.snappy.compress_raw(request.SerializeToString())))


def write_histograms(receiver: PrometheusClient, start: int) -> None:
    """A series of native histograms, each with one observation of zero."""
    request = WriteRequest()
    series = request.timeseries.add()
    series.labels.add(name="__name__", value="a_histogram")
    for number in range(10):
        time = b"\x78" + uvarint(start + 1000 * number)
        # Its count, sum, schema, width of the zero bucket, and the count of that.
        content = b"\x08\x01" + b"\x19" + bytes(8) + b"\x20\x00" + b"\x29" + struct.pack("<d", 1e-9) + b"\x30\x01"
        series.histograms.append(content + time)
    receiver.post("/api/v1/write", bytes(cramjam.snappy.compress_raw(request.SerializeToString())))


def snapshot(client: PrometheusClient, data: Path) -> Path:
    status, body = client.request("/api/v1/admin/tsdb/snapshot", method="POST")
    assert status == 200, body
    (folder,) = (data / "snapshots").iterdir()
    return folder


def no_scrapes(_address: str) -> dict[str, Any]:
    return {"global": {"scrape_interval": "1h"}}


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    folder = tmp_path_factory.mktemp("prometheus")
    start = SystemClock().now_ms() - 1_000_000
    written = known_samples(start)
    with prometheus(folder / "writer", no_scrapes, *OPTIONS) as writer:
        write(writer, written)
        write_histograms(writer, start)
        first = snapshot(writer, folder / "writer" / "data")
    # The snapshot of a head has no tombstones, because deleted samples are omitted. A block keeps them, with
    # tombstones.
    blocks = folder / "blocks"
    shutil.copytree(first, blocks)
    with prometheus(folder / "deleter", no_scrapes, *OPTIONS, data=blocks) as deleter:
        from_ms, to_ms = start + 100_000, start + 300_000
        status, body = deleter.request(
            "/api/v1/admin/tsdb/delete_series",
            method="POST",
            match='known_total{series="007"}',
            start=from_ms / 1000,
            end=to_ms / 1000,
        )
        assert status == 204, body
        second = snapshot(deleter, blocks)
        answered = {
            tuple(sorted(series["metric"].items())): [
                (round(time * 1000), float(value)) for time, value in series["values"]
            ]
            for series in deleter.data("/api/v1/query", query="known_total[30m]", time=start / 1000 + 1000)["result"]
        }
    left = {
        labels: [s for s in samples if dict(labels)["series"] != "007" or not from_ms <= s[0] <= to_ms]
        for labels, samples in written.items()
    }
    return Snapshots(written, first, left, second, answered)


def read_all(path: Path, most_samples: int) -> Iterator[SampleBlock]:
    fs = LocalFileSystem()
    for block in find_blocks(fs, str(path)):
        for part in plan_ranges(fs, block, most_samples):
            yield from read_range(fs, block, part, most_samples)


@pytest.mark.parametrize("most_samples", [1000, 1 << 20])
def test_a_snapshot_of_a_head_has_every_sample_that_was_written(snapshots: Snapshots, most_samples: int) -> None:
    blocks = list(read_all(snapshots.first, most_samples))
    assert samples_of(blocks) == snapshots.written
    assert sum(block.records for block in blocks) >= SERIES * SAMPLES // 120
    bad = BadRecords.joined([block.bad for block in blocks])
    assert bad.counts == {"native histogram": 1}
    assert bad.examples[0].excerpt.endswith('/chunks/000001 {__name__="a_histogram"}')


def test_the_counts_of_a_block_equal_its_content(snapshots: Snapshots) -> None:
    found = find_blocks(LocalFileSystem(), str(snapshots.first))
    times = [time for samples in snapshots.written.values() for time, _ in samples]
    assert sum(block.samples for block in found) == SERIES * SAMPLES + 10
    assert max(block.series for block in found) == SERIES + 1
    assert found[0].min_time <= min(times) <= max(times) < found[-1].max_time
    assert sum(block.chunks for block in found) == sum(block.records for block in read_all(snapshots.first, 1 << 20))


def test_samples_with_tombstones_are_omitted(snapshots: Snapshots) -> None:
    assert snapshots.left != snapshots.written
    assert samples_of(read_all(snapshots.second, 1 << 20)) == snapshots.left


def test_the_samples_equal_the_answers_of_prometheus(snapshots: Snapshots) -> None:
    """A range query shows no stale markers."""
    read = samples_of(read_all(snapshots.second, 1 << 20))
    assert {
        labels: [(time, from_bits(value)) for time, value in samples if value != STALE]
        for labels, samples in read.items()
    } == snapshots.answered
