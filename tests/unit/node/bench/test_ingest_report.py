"""The report of `strandline bench ingest`."""

import json
from dataclasses import asdict, replace

import pytest

from strandline.node.bench.ingest_report import IngestReport, Part, PeerFigures
from strandline.node.bench.machine import MIB, Machine
from strandline.node.output import Table

pytestmark = pytest.mark.unit

BEFORE = {"counters": {"samples": 1_000, "records": 5}, "cpu_seconds": 3.0, "stages": {"decode": 1.0, "store": 0.5}}
AFTER = {"counters": {"samples": 5_000, "records": 9}, "cpu_seconds": 5.0, "stages": {"decode": 2.0, "store": 1.0}}
PART = Part(samples=4_000, seconds=8.0, cpu_seconds=2.0, stages={"decode": 1.0, "store": 0.5})
REPORT = IngestReport(
    series=2_000,
    scrapes=60,
    labels_a_series=10,
    samples_a_record=2_000,
    machine=Machine("A CPU", 2, 8_000, "6.1", "3.11"),
    new_series=PART,
    steady_state=replace(PART, samples=8_000_000),
    stored_bytes_a_sample=0.634,
    index_bytes_a_series=31.26,
    resident_bytes=200 * MIB,
    resident_bytes_at_end=150 * MIB,
    peak_resident_bytes=1_300 * MIB,
    buffer_bytes_a_sample=1.849,
    peer=None,
)


def tables(report: IngestReport) -> list[Table]:
    return [block for block in report.blocks() if isinstance(block, Table)]


def lines(report: IngestReport) -> list[str]:
    return [block for block in report.blocks() if isinstance(block, str)]


def test_a_part_is_the_difference_of_two_statuses() -> None:
    assert Part.between(BEFORE, AFTER, 8.0) == PART


def test_rates_are_by_the_clock_and_by_the_processors_time() -> None:
    assert PART.samples_per_second == 500
    assert PART.samples_per_cpu_second == 2_000


def test_time_outside_of_stages_is_shown_and_all_is_the_sum() -> None:
    assert list(PART.rows()) == [
        ("decode", "1.00", "250,000", "50%"),
        ("store", "0.50", "125,000", "25%"),
        ("other", "0.50", "125,000", "25%"),
        ("all", "2.00", "500,000", "100%"),
    ]


def test_the_report_begins_with_how_much_was_measured_and_where() -> None:
    assert lines(REPORT)[:2] == [
        "2,000 series x 60 scrapes, 10 labels a series, 2,000 samples a record",
        "A CPU, 2 cores, 8000 MB, Linux 6.1, Python 3.11",
    ]


def test_each_part_has_its_rates_and_its_stages() -> None:
    rates = [line for line in lines(REPORT) if "samples/s" in line]
    assert rates == [
        "series that are new, not stored yet: 500 samples/s, 2,000 samples a CPU-second",
        "steady state, stored and all: 1,000,000 samples/s, 4,000,000 samples a CPU-second",
    ]
    new, steady, _ = tables(REPORT)
    assert new.columns == steady.columns == ("stage", "CPU s", "ns a sample", "share")
    assert new.rows == tuple(PART.rows())
    assert steady.rows[-1] == ("all", "2.00", "250", "100%")


def test_sizes_are_shown_with_the_digits_that_mean_something() -> None:
    assert [row[1] for row in tables(REPORT)[2].rows] == ["0.63", "31.3", "1.85", "200 MB", "150 MB", "1,300 MB"]


def test_a_peer_is_compared_with_the_ratio() -> None:
    assert len(tables(REPORT)) == 3
    with_peer = replace(REPORT, peer=PeerFigures(new_series=1_000.0, steady_state=230_000.0))
    beside = tables(with_peer)[3]
    assert beside.columns == ("samples a CPU-second", "strandline", "peer", "ratio")
    assert beside.rows == (
        ("new series", "2,000", "1,000", "2.0"),
        ("steady state", "4,000,000", "230,000", "17.4"),
    )


def test_the_report_is_a_json_document() -> None:
    document = json.loads(json.dumps(asdict(REPORT), allow_nan=False))
    assert document["steady_state"]["samples"] == 8_000_000
    assert document["new_series"]["stages"] == {"decode": 1.0, "store": 0.5}
    assert document["peer"] is None
